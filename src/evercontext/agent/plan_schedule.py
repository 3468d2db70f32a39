"""Choose the tasks of a plan that may run now, by dependencies and files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from evercontext.agent.plan import PlanTask, TaskPlan


@dataclass(slots=True)
class Schedule:
    """A plan being carried out. The order of its tasks depends on the plan alone."""

    plan: TaskPlan
    width: int = 1
    """Tasks that may run at the same time."""
    done: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    """Tasks that failed, and tasks that needed them."""
    running: list[PlanTask] = field(default_factory=list)
    _waiting: list[PlanTask] = field(init=False)

    def __post_init__(self) -> None:
        self._waiting = [task for task in self.plan.in_order() if task.id not in self.done]

    def begin(self) -> PlanTask | None:
        """Take the next task that may run beside the running ones, or nothing."""
        if len(self.running) >= self.width:
            return None
        passed: list[PlanTask] = []
        for task in self._waiting:
            if self._may_begin(task, passed):
                self._waiting.remove(task)
                self.running.append(task)
                return task
            # A later task never overtakes one that may touch the same files.
            passed.append(task)
        return None

    def end(self, task: PlanTask, *, done: bool) -> None:
        """Note how a running task ended."""
        self.running.remove(task)
        (self.done if done else self.lost).add(task.id)

    def recover(self, done: Iterable[str]) -> None:
        """Mark tasks as done after all, so that tasks that need them can run."""
        recovered = set(done)
        self.done |= recovered
        self.lost -= recovered
        self.lost -= {task.id for task in self._waiting}

    def skipped(self) -> tuple[PlanTask, ...]:
        """The tasks that were never begun."""
        return tuple(self._waiting)

    def _may_begin(self, task: PlanTask, passed: Iterable[PlanTask]) -> bool:
        if not self.done.issuperset(task.depends_on):
            return False
        before = (other for other in passed if not self._is_lost(other))
        return all(task.disjoint(other) for other in (*self.running, *before))

    def _is_lost(self, task: PlanTask) -> bool:
        """True if it can no longer run; tasks that need it cannot either."""
        if task.id not in self.lost and self.lost & set(task.depends_on):
            self.lost.add(task.id)
        return task.id in self.lost
