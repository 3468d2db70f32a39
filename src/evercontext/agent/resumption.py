"""Resume an interrupted task; steps that its trace shows as done are not repeated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evercontext.agent import plan as plans
from evercontext.agent.plan import TaskPlan
from evercontext.agent.planner import MakePlan, Planned
from evercontext.domain.event import (
    Diff,
    Event,
    Final,
    Plan,
    RolledBack,
    Step,
    Task,
    TaskBegan,
    TaskEnded,
)
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller
from evercontext.errors import NotFound, UsageError
from evercontext.files.task_changes import Extent, find_undo
from evercontext.process.name_lock import hold_name

LOCKS = "runs.lock"


@dataclass(slots=True)
class Interrupted:
    """A task as far as it came."""

    trace_id: str
    task: Task
    plan: TaskPlan | None = None
    finished: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    red: set[str] = field(default_factory=set)
    """Tasks that came to their end with red checks."""
    changed: dict[str, bool] = field(default_factory=dict)
    final: Final | None = None
    rolled_back: str | None = None
    """The trace of the undo, if the run took its changes back itself."""

    def planned(self) -> Planned:
        """The rest of the plan."""
        plan = self.plan or plans.implicit(self.task.text)
        begun = frozenset(self.begun - self.finished)
        return Planned(
            plan,
            "resume",
            finished=frozenset(self.finished),
            interrupted=begun,
            red=frozenset(self.red - self.finished),
        )

    def files(self) -> tuple[str, ...]:
        """Return the files that were really changed so far."""
        return tuple(path for path, real in self.changed.items() if real)

    def check(self, root: Path, home: Path) -> None:
        """Raise where there is nothing to take up, or not here."""
        short = self.trace_id[:8]
        if Path(self.task.root).resolve() != root.resolve():
            fix = f"--root {self.task.root}"
            raise UsageError(f"the task {short} was run in {self.task.root}", fix=f"Say {fix}")
        if self.task.door != "run":
            fix = "Take the conversation up: evercontext chat -r"
            raise UsageError(f"{short} is a turn of a conversation", fix=fix)
        self.check_stands(home)
        if self.final and self.final.exit_code == Outcome.DONE:
            raise UsageError(f"the task {short} is done", fix="Give a new one with --task")

    def check_stands(self, home: Path) -> None:
        """Raise if changes of the task were undone, even some of them."""
        taken = find_undo(home, Path(self.task.root).resolve(), self.trace_id)
        forgotten = taken.extent is Extent.UNKNOWN and self.rolled_back is not None
        if taken.extent in (Extent.UNKNOWN, Extent.NOTHING) and not forgotten:
            return
        part = "a part of " if taken.extent is Extent.PART else ""
        how = "undone" if self.rolled_back is None else "rolled back"
        fix = "Give the task again with --task"
        if taken.undo:
            undo = f"evercontext undo {taken.undo[:8]}"
            fix = f"Bring it back with `{undo}`, or give the task again with --task"
        raise UsageError(f"{part}what the task {self.trace_id[:8]} did was {how}", fix=fix)


def take_up(trace_id: str, events: Iterable[Event]) -> Interrupted:
    """Fold the events of one trace into how far its task came."""
    interrupted: Interrupted | None = None
    for event in events:
        match event.body:
            case Task() as task if interrupted is None:
                interrupted = Interrupted(trace_id, task)
            case body if interrupted is not None:
                _take(interrupted, body)
    if interrupted is None:
        raise NotFound(
            f"the trace {trace_id[:8]} holds no task", fix="See `evercontext trace list`"
        )
    return interrupted


def _take(interrupted: Interrupted, body: object) -> None:
    match body:
        case Task():
            interrupted.final = None
        case Plan(tasks=tasks, finished=finished):
            interrupted.plan = plans.validate({"tasks": [dict(task) for task in tasks]})
            interrupted.finished, interrupted.begun, interrupted.red = set(finished), set(), set()
        case TaskBegan(id=id):
            interrupted.begun.add(id)
        case TaskEnded(id=id, status="done"):
            interrupted.finished.add(id)
        case TaskEnded(id=id, status="red"):
            interrupted.red.add(id)
        case Step() if interrupted.plan and len(interrupted.plan.tasks) == 1:
            interrupted.begun.add(interrupted.plan.tasks[0].id)
        case Diff(path=path, applied=True, added=added, removed=removed):
            interrupted.changed[path] = bool(added or removed) or interrupted.changed.get(
                path, False
            )
        case RolledBack(undo=undo):
            interrupted.rolled_back = undo
        case Final() as final:
            interrupted.final = final
            _end(interrupted, final)


def _end(interrupted: Interrupted, final: Final) -> None:
    """Take in how a run ended whose plan was one task: nothing else says that of it."""
    tasks = interrupted.plan.tasks if interrupted.plan else ()
    if len(tasks) == 1 and final.tasks_done:
        interrupted.finished.add(tasks[0].id)
    elif len(tasks) == 1 and final.status == Outcome.RED.word:
        interrupted.red.add(tasks[0].id)


def resumed(interrupted: Interrupted, replan: MakePlan) -> MakePlan:
    """First the rest of the old plan; a planner makes another one if that fails."""

    async def make_plan(text: str, failure: str, caller: Caller) -> Planned:
        return await replan(text, failure, caller) if failure else interrupted.planned()

    return make_plan


@contextmanager
def alone(home: Path, trace_id: str) -> Iterator[None]:
    """Hold a trace while its task runs; whatever ends this process lets it go."""
    fix = f"Wait for it, or look: evercontext trace tail {trace_id[:8]}"
    with hold_name(
        home / LOCKS, trace_id, UsageError(f"the task {trace_id[:8]} is still running", fix=fix)
    ):
        yield
