"""Plan a task without doing it: log the evidence, the plan and the end, and change no file."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import replace

from evercontext.agent.open_project import OpenProject
from evercontext.agent.plan_sources import EditPlan, edited
from evercontext.agent.planner import Planned
from evercontext.domain.event import Body, Final, Plan, Task
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import EverContextError, InvalidPlan


async def plan_task(
    project: OpenProject,
    text: str,
    *,
    planner: str,
    executor: str,
    trace_id: str,
    edit: EditPlan | None = None,
) -> Planned:
    """Plan with the model ``planner`` for the model ``executor``, which would do the task."""
    started, root = time.monotonic(), str(project.settings.root)
    task = Task(text=text, root=root, model=planner, mode=Mode.PLAN, door=Door.RUN)
    began = project.events.emit(task, trace_id=trace_id).id
    caller = Caller(trace_id, Door.RUN, Mode.PLAN, project.principal, parent=began)

    def end(final: Final) -> None:
        duration = round((time.monotonic() - started) * 1000)
        _emit(project, replace(final, duration_ms=duration), trace_id, began)

    try:
        async with AsyncExitStack() as stack:
            surroundings = await project.surroundings(caller)
            planning = await project.planning(stack, planner, executor, surroundings)
            make_plan = edited(planning, edit, project.events) if edit else planning
            planned = await make_plan(text, "", caller)
    except EverContextError as error:
        end(_failed(error))
        raise
    tasks = tuple(task.to_json() for task in planned.plan.tasks)
    body = Plan(tasks=tasks, source=planned.source, tree=planned.tree)
    _emit(project, body, trace_id, began)
    end(_report(planned))
    return planned


def _report(planned: Planned) -> Final:
    """Report the plan that was made: its tasks, of which none is done."""
    return Final(
        status=Outcome.DONE.word,
        text="",
        exit_code=int(Outcome.DONE),
        turns=planned.replies,
        input_tokens=planned.usage.input_tokens,
        output_tokens=planned.usage.output_tokens,
        cost_usd=planned.cost,
        tasks=len(planned.plan.tasks),
    )


def _failed(error: EverContextError) -> Final:
    outcome = outcome_of(error)
    invalid = error if isinstance(error, InvalidPlan) else InvalidPlan("")
    return Final(
        status=outcome.word,
        text="",
        exit_code=int(outcome),
        turns=invalid.replies,
        input_tokens=invalid.input_tokens,
        output_tokens=invalid.output_tokens,
        error=str(error),
        tasks=0,
    )


def _emit(project: OpenProject, body: Body, trace_id: str, began: str) -> None:
    project.events.emit(body, trace_id=trace_id, parent=began)
