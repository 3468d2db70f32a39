"""Execute a plan: parts in order or side by side, each accounted for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.agent.plan import PlanTask, TaskPlan
from evercontext.agent.plan_schedule import Schedule
from evercontext.agent.run_progress import Progress
from evercontext.domain.outcome import Outcome
from evercontext.errors import EverContextError

FATAL = (Outcome.LIMIT, Outcome.DENIED, Outcome.UNREACHABLE, Outcome.CANCELLED, Outcome.TERMINATED)
"""Outcomes after which no other task of the plan would fare better."""

CUT_OFF = (
    "This was begun before and cut off in the middle. Look at what is there already, and go on"
    " from it."
)


@dataclass(slots=True)
class PlanPart:
    """One task of a plan that was begun, and how it ended."""

    task: PlanTask
    outcome: Outcome = Outcome.CANCELLED
    text: str = ""
    error: EverContextError | None = None
    progress: Progress = field(default_factory=Progress)
    before: bool = False
    """Done in an earlier run of the same trace."""

    @property
    def done(self) -> bool:
        """True if it came to its end."""
        return self.outcome is Outcome.DONE


Do = Callable[[PlanPart, "PlanExecution"], Coroutine[Any, Any, None]]
"""Does one part and writes into it how it ended."""


@dataclass(slots=True)
class PlanExecution:
    """A plan being followed."""

    plan: TaskPlan
    do: Do
    width: int = 1
    finished: Collection[str] = ()
    parts: dict[str, PlanPart] = field(default_factory=dict)
    _schedule: Schedule = field(init=False)
    _running: dict[asyncio.Task[None], PlanPart] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._schedule = Schedule(self.plan, self.width, set(self.finished))
        for task in self.plan.tasks:
            if task.id in self.finished:
                self.parts[task.id] = PlanPart(task, Outcome.DONE, before=True)

    async def run(self) -> PlanPart | None:
        """Do all tasks that can run; return the part that ended the plan early, if one did."""
        stopped: list[PlanPart] = []
        try:
            while True:
                while not stopped and (task := self._schedule.begin()):
                    self._begin(task)
                if not self._running:
                    return self._first(stopped)
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                stopped += [part for part in self._ended() if self._ends_the_plan(part)]
        finally:
            await self._let_go()

    async def go_on(self) -> PlanPart | None:
        """Do the tasks that can run now that some parts are done after all."""
        self._schedule.recover(id for id, part in self.parts.items() if part.done)
        return await self.run()

    def in_order(self) -> list[PlanPart]:
        """The parts as the plan has them, whichever ended first."""
        return [self.parts[task.id] for task in self.plan.in_order() if task.id in self.parts]

    def skipped(self) -> tuple[PlanTask, ...]:
        """The tasks that were never begun."""
        return self._schedule.skipped()

    def claimed(self, path: str, by: PlanTask) -> str | None:
        """The id of another running task that this file belongs to."""
        claim = PlanTask("", "", files=(path,))
        others = (part.task for part in self._running.values() if part.task is not by)
        return next((task.id for task in others if task.files and not task.disjoint(claim)), None)

    def _begin(self, task: PlanTask) -> None:
        part = self.parts[task.id] = PlanPart(task)
        self._running[asyncio.create_task(self.do(part, self))] = part

    def _ended(self) -> list[PlanPart]:
        over = [work for work in self._running if work.done()]
        parts = []
        for work in over:
            part = self._running.pop(work)
            work.result()
            self._schedule.end(part.task, done=part.done)
            parts.append(part)
        return parts

    def _first(self, stopped: list[PlanPart]) -> PlanPart | None:
        return next((part for part in self.in_order() if part in stopped), None)

    def _ends_the_plan(self, part: PlanPart) -> bool:
        return not part.done and (part.task.on_error != "continue" or part.outcome in FATAL)

    async def _let_go(self) -> None:
        for work in self._running:
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


def part_request(text: str, task: PlanTask, ended: Sequence[PlanPart]) -> str:
    """Return the request for one task of a plan with several."""
    lines = [f"The whole task: {text}", "", f"Your part of it now: {task.title}"]
    if task.detail:
        lines.append(task.detail)
    if task.files:
        lines.append(f"Expected files: {', '.join(task.files)}")
    done = [f"- {part.task.title}" for part in ended if part.done]
    return "\n".join(lines + (["", "Already done:", *done] if done else []))
