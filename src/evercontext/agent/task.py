"""One task from beginning to end: its trace, its plan, its loop, its honest outcome."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from evercontext.agent import plan as plans
from evercontext.agent.briefing import Surroundings, brief, part_in
from evercontext.agent.limits import LimitHit, Limits, Meter
from evercontext.agent.loop import Loop, Price, Progress, Remember, forget
from evercontext.agent.plan import PlanTask, TaskPlan
from evercontext.agent.verify import Repair, Repairing, Verdict, Verify, no_checks, no_repair
from evercontext.context.window import Window
from evercontext.domain.event import Body, Final, Notice, Plan, Task, TaskEnded
from evercontext.domain.message import Message, user
from evercontext.domain.model import Model
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.domain.tool import Caller, Mode
from evercontext.errors import Cancelled, EverContextError, Terminated
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox

MOST_REPLANS = 2

MakePlan = Callable[[str, str], Awaitable[tuple[TaskPlan, str]]]
"""Given the task and the last failure (or nothing), returns a plan and where it came from."""


def new_trace_id() -> str:
    """One UUID binds everything that belongs to one task."""
    return str(uuid.uuid4())


async def no_planner(text: str, failure: str) -> tuple[TaskPlan, str]:
    """Without a planner the plan is the task itself, and no model is asked for it."""
    return plans.implicit(text), "implicit"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """How a task ended, for people and programs."""

    trace_id: str
    outcome: Outcome
    text: str
    error: EverContextError | None
    final: Final


@dataclass(slots=True)
class _Step:
    """How one task of the plan ended."""

    task: PlanTask
    outcome: Outcome
    text: str = ""
    error: EverContextError | None = None


@dataclass(slots=True)
class TaskRun:
    """Everything one task needs."""

    model: Model
    toolbox: Toolbox
    events: EventLog
    caller: Caller
    surroundings: Surroundings
    root: str
    limits: Limits = field(default_factory=Limits)
    price: Price = lambda model, usage: None
    make_plan: MakePlan = no_planner
    window: Window | None = None
    conversation: list[Message] | None = None
    """What was said before this task and, afterwards, in it; ``None``: each part begins afresh."""
    remember: Remember = forget
    reminder: Message | None = None
    """Memories that bear on the task: shown with it, never part of the conversation."""
    verify: Verify = no_checks
    """Runs the project's checks once files were changed; the model has no say in it."""
    repair: Repair = no_repair
    """Mends what made the checks red, or takes back whatever did not help."""
    _verdict: Verdict = "not verified"
    _meter: Meter = field(init=False)
    _progress: Progress = field(default_factory=Progress)
    _steps: list[_Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._meter = Meter(self.limits)

    async def run(self, text: str) -> TaskReport:
        """Do the task; whatever happens, the trace ends with a ``final`` event."""
        began = self._begin(text)
        try:
            await self._carry_out(text, began)
            if self._changed() and self.caller.mode is Mode.AGENT:
                await self._check(text, began)
            return self._end(began, None)
        except EverContextError as error:
            return self._end(began, error)
        except asyncio.CancelledError as stopped:
            by_system = Terminated.code in stopped.args
            self._end(began, Terminated("stopped by the system") if by_system
                      else Cancelled("stopped by the user"))  # fmt: skip
            raise

    async def _check(self, text: str, began: str) -> None:
        caller = dataclasses.replace(self.caller, parent=began)
        self._verdict = await self.verify(caller)
        if self._verdict != "red":
            return

        async def ask(about: str, toolbox: Toolbox) -> None:
            mending = Progress()
            try:
                await self._converse(about, "repair", began, toolbox, mending)
            finally:
                self._progress.refusals += mending.refusals

        name = self.model.info.bare_name
        given = Repairing(text, caller, self.toolbox, self._changed(), name, ask)
        self._verdict, changed = await self.repair(given)
        self._progress.changed |= dict.fromkeys(changed, True)

    async def _carry_out(self, text: str, began: str) -> None:
        """Follow the plan, and make another one as long as it asks for that."""
        failure = ""
        for _ in range(1 + MOST_REPLANS):
            plan, source = await self.make_plan(text, failure)
            tasks = tuple(task.to_json() for task in plan.tasks)
            self._emit(Plan(tasks=tasks, source=source), began)
            failed = await self._follow(text, plan, began)
            if failed is None or failed.task.on_error != "replan":
                return
            failure = f"{failed.task.title}: {failed.error or failed.text}"
            self._steps = [step for step in self._steps if step.outcome is Outcome.DONE]

    async def _follow(self, text: str, plan: TaskPlan, began: str) -> _Step | None:
        """Do the tasks in order; return the one that ended the plan early, if any did."""
        undone: set[str] = set()
        for task in plan.in_order():
            if undone & set(task.depends_on):
                undone.add(task.id)
                continue
            step = await self._do(text, task, len(plan.tasks) > 1, began)
            self._steps.append(step)
            if step.outcome is Outcome.DONE:
                continue
            undone.add(task.id)
            if task.on_error != "continue" or step.outcome in _FATAL:
                return step
        return None

    async def _do(self, text: str, task: PlanTask, of_several: bool, began: str) -> _Step:
        progress = Progress()
        asked = self._asked(text, task) if of_several else text
        step = _Step(task, Outcome.DONE)
        try:
            step.text = await self._converse(asked, "agent", began, self.toolbox, progress, text)
        except EverContextError as error:
            step.error = error
            if isinstance(error, LimitHit):
                self._emit(error.event, began)
        finally:
            self._progress.add(progress)
        step.outcome = judge(progress, step.error)
        if of_several:
            ended = TaskEnded(id=task.id, title=task.title, status=step.outcome.word)
            self._emit(ended, began)
        return step

    async def _converse(
        self,
        asked: str,
        role: str,
        began: str,
        toolbox: Toolbox,
        progress: Progress,
        task: str | None = None,
    ) -> str:
        """Let the model work on what is asked until it answers; the conversation keeps it."""
        hints = {
            "role": role,
            "task": task or asked,
            "root": self.surroundings.root_name,
            "tree": tuple(self.surroundings.tree),
        }
        loop = Loop(
            model=self.model,
            toolbox=toolbox,
            events=self.events,
            caller=dataclasses.replace(self.caller, parent=began),
            meter=self._meter,
            hints=hints,
            price=self.price,
            remember=self.remember,
            window=self.window,
            progress=progress,
        )
        mode = self.caller.mode
        prompt = brief(self.surroundings, part_in(mode), mode)
        reminders = [self.reminder] if self.reminder else []
        history = [prompt, *reminders, *(self.conversation or ()), user(asked)]
        try:
            await self.remember(history[-1])
            return await loop.run(history)
        finally:
            if self.conversation is not None:
                self.conversation[:] = history[1 + len(reminders) :]

    def _asked(self, text: str, task: PlanTask) -> str:
        lines = [f"The whole task: {text}", "", f"Your part of it now: {task.title}"]
        if task.detail:
            lines.append(task.detail)
        if task.files:
            lines.append(f"Expected files: {', '.join(task.files)}")
        done = [f"- {step.task.title}" for step in self._steps if step.outcome is Outcome.DONE]
        return "\n".join(lines + (["", "Already done:", *done] if done else []))

    def _begin(self, text: str) -> str:
        caller = self.caller
        task = Task(
            text=text,
            root=self.root,
            model=self.model.info.name,
            mode=caller.mode,
            door=caller.door,
            session=caller.session,
        )
        began = self.events.emit(task, trace_id=caller.trace_id, parent=caller.parent).id
        if self.model.info.notice:
            self._emit(Notice(level="info", text=self.model.info.notice), began)
        return began

    def _end(self, began: str, error: EverContextError | None) -> TaskReport:
        failed = next((step for step in self._steps if step.outcome is not Outcome.DONE), None)
        error = error or (failed.error if failed else None)
        outcome = outcome_of(error) if error else (failed.outcome if failed else Outcome.DONE)
        if self._progress.refusals and outcome in _OVERRULED:
            outcome = Outcome.REFUSED
        if outcome is Outcome.DONE and self._verdict == "red":
            outcome = Outcome.RED
        answer = "\n\n".join(step.text for step in self._steps if step.text)
        meter = self._meter
        final = Final(
            status=outcome.word,
            text=answer,
            exit_code=int(outcome),
            turns=meter.turns,
            duration_ms=round(meter.seconds * 1000),
            input_tokens=meter.usage.input_tokens,
            output_tokens=meter.usage.output_tokens,
            cost_usd=meter.cost,
            error=str(error) if error else _unsaid(outcome, self._progress),
            changed=self._changed(),
            verified=self._verdict if self._changed() else None,
            tasks_done=sum(step.outcome is Outcome.DONE for step in self._steps),
            tasks=len(self._steps),
        )
        self._emit(final, began)
        return TaskReport(self.caller.trace_id, outcome, answer, error, final)

    def _changed(self) -> tuple[str, ...]:
        return tuple(path for path, real in self._progress.changed.items() if real)

    def _emit(self, body: Body, began: str) -> None:
        self.events.emit(body, trace_id=self.caller.trace_id, parent=began)


_OVERRULED = (Outcome.DONE, Outcome.FAILED, Outcome.LIMIT)
_FATAL = (Outcome.LIMIT, Outcome.DENIED, Outcome.UNREACHABLE, Outcome.CANCELLED)
"""Outcomes after which no other task of the plan would fare better."""


def judge(progress: Progress, error: EverContextError | None) -> Outcome:
    """How it ended. The model's own word that all is well does not decide it.

    A policy refusal makes the run a refused one, however it went on; a last call that failed and
    was never made good leaves the task undone.
    """
    outcome = outcome_of(error) if error else Outcome.DONE
    if progress.refusals and outcome in _OVERRULED:
        return Outcome.REFUSED
    if outcome is Outcome.DONE and progress.denied:
        return Outcome.DENIED
    if outcome is Outcome.DONE and progress.last_call_failed:
        return Outcome.FAILED
    return outcome


def _unsaid(outcome: Outcome, progress: Progress) -> str | None:
    if outcome is Outcome.REFUSED:
        return f"refused by policy: {progress.refusals[-1]}"
    if outcome is Outcome.FAILED:
        return "the last call failed and the task stayed undone"
    if outcome is Outcome.RED:
        return "finished, but the project's checks are red"
    return "not approved" if outcome is Outcome.DENIED else None
