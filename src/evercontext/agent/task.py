"""One task from beginning to end: its trace, its loop, its honest outcome."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from dataclasses import dataclass, field

from evercontext.agent.briefing import Surroundings, brief
from evercontext.agent.limits import LimitHit, Limits, Meter
from evercontext.agent.loop import Loop, Price, Progress
from evercontext.domain.event import Final, Plan, Task
from evercontext.domain.message import user
from evercontext.domain.model import Model
from evercontext.domain.outcome import Outcome, outcome_of
from evercontext.domain.tool import Caller
from evercontext.errors import Cancelled, EverContextError
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox


def new_trace_id() -> str:
    """One UUID binds everything that belongs to one task."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class TaskReport:
    """How a task ended, for people and programs."""

    trace_id: str
    outcome: Outcome
    text: str
    error: EverContextError | None
    final: Final


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

    async def run(self, text: str) -> TaskReport:
        """Do the task; whatever happens, the trace ends with a ``final`` event."""
        began = self._begin(text)
        loop = Loop(
            self.model,
            self.toolbox,
            self.events,
            dataclasses.replace(self.caller, parent=began),
            Meter(self.limits),
            hints={
                "task": text,
                "root": self.surroundings.root_name,
                "tree": tuple(self.surroundings.tree),
            },
            price=self.price,
        )
        history = [brief(self.surroundings, self.caller.mode), user(text)]
        try:
            answer = await loop.run(history)
            return self._end(loop, began, answer, None)
        except EverContextError as error:
            if isinstance(error, LimitHit):
                self.events.emit(error.event, trace_id=self.caller.trace_id, parent=began)
            return self._end(loop, began, "", error)
        except asyncio.CancelledError:
            self._end(loop, began, "", Cancelled("stopped by the user"))
            raise

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
        implicit = {"id": "task", "title": text, "depends_on": [], "on_error": "stop"}
        self.events.emit(
            Plan(tasks=(implicit,), source="implicit"), trace_id=caller.trace_id, parent=began
        )
        return began

    def _end(
        self, loop: Loop, began: str, answer: str, error: EverContextError | None
    ) -> TaskReport:
        outcome = judge(loop.progress, error)
        meter = loop.meter
        final = Final(
            status=outcome.word,
            text=answer,
            exit_code=int(outcome),
            turns=meter.turns,
            duration_ms=round(meter.seconds * 1000),
            input_tokens=meter.usage.input_tokens,
            output_tokens=meter.usage.output_tokens,
            cost_usd=meter.cost,
            error=str(error) if error else _unsaid(outcome, loop.progress),
            changed=tuple(loop.progress.changed),
        )
        self.events.emit(final, trace_id=self.caller.trace_id, parent=began)
        return TaskReport(self.caller.trace_id, outcome, answer, error, final)


def judge(progress: Progress, error: EverContextError | None) -> Outcome:
    """How it ended. The model's own word that all is well does not decide it.

    A policy refusal makes the run a refused one, however it went on; a last call that failed and
    was never made good leaves the task undone.
    """
    outcome = outcome_of(error) if error else Outcome.DONE
    if progress.refusals and outcome in (Outcome.DONE, Outcome.FAILED, Outcome.LIMIT):
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
    return "not approved" if outcome is Outcome.DENIED else None
