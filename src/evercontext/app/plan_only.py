"""Planning a task without doing it: a trace with evidence, a plan and an end, and no change."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import replace

from evercontext.agent.planner import Planned
from evercontext.agent.task import new_trace_id
from evercontext.app.house import EverContext
from evercontext.app.models import canonical_name, choose_model
from evercontext.app.planning import EditPlan, edited
from evercontext.app.setup import missing_model
from evercontext.domain.event import Body, Final, Plan, Task
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import EverContextError, InvalidPlan


async def plan_task(
    app: EverContext,
    text: str,
    *,
    trace_id: str | None = None,
    edit: EditPlan | None = None,
    model_name: str | None = None,
) -> Planned:
    """Plan with the planner that is set, else with the model that would do the task."""
    trace_id = trace_id or new_trace_id()
    caller = Caller(trace_id, Door.RUN, Mode.PLAN, app.principal)
    settings, started = app.settings, time.monotonic()
    if not (model_name or settings.planner) and (problem := await missing_model(settings)):
        raise problem
    choice = await choose_model(settings)
    executor = model_name or (choice.name if choice else "")
    planner = canonical_name(settings.planner) if settings.planner else executor
    task = Task(text=text, root=str(settings.root), model=planner, mode=Mode.PLAN, door=Door.RUN)
    began = app.events.emit(task, trace_id=trace_id).id
    caller = Caller(trace_id, Door.RUN, Mode.PLAN, caller.principal, parent=began)

    def end(final: Final) -> None:
        duration = round((time.monotonic() - started) * 1000)
        _emit(app, replace(final, duration_ms=duration), trace_id, began)

    try:
        async with AsyncExitStack() as stack:
            surroundings = await app.surroundings(caller)
            planning = await app.planning(stack, planner, executor, surroundings)
            make_plan = edited(planning, edit, app.events) if edit else planning
            planned = await make_plan(text, "", caller)
    except EverContextError as error:
        end(_failed(error))
        raise
    tasks = tuple(task.to_json() for task in planned.plan.tasks)
    body = Plan(tasks=tasks, source=planned.source, tree=planned.tree)
    _emit(app, body, trace_id, began)
    end(_made(planned))
    return planned


def _made(planned: Planned) -> Final:
    """Say what was made: so many tasks, of which none is done."""
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


def _emit(app: EverContext, body: Body, trace_id: str, began: str) -> None:
    app.events.emit(body, trace_id=trace_id, parent=began)
