"""Summarise the journal by task: what each changed, and what was undone since."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from evercontext.files.contained_paths import Root
from evercontext.files.journal import Journal, read_history
from evercontext.files.journal_records import History, JournalEntry, StepInfo
from evercontext.files.links_and_directories import Creations, standing


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of one task's changes."""

    trace_id: str
    at: int
    paths: tuple[str, ...]
    undone: bool
    """An undo took everything back that it takes without being told to take doubtful files too."""
    is_undo: bool
    stands: bool = True
    """There is something that an undo can take back without being told so."""


class Extent(Enum):
    """How much of a task's work is taken back."""

    UNKNOWN = "unknown"
    """The journal does not hold the task, or no longer."""
    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class TakenBack:
    """How much of a task's work an undo took back, and which undo."""

    extent: Extent
    undo: str = ""
    """The trace of the undo, where undoing that brings files back."""


@dataclass(frozen=True, slots=True)
class DoubtfulChange:
    """A file that changed while a command ran that nobody waited for, by it or by the user."""

    trace_id: str
    """The task that began the command."""
    path: str
    command: str
    before: str | None
    after: str | None
    """The hashes of its contents."""

    @property
    def reason(self) -> str:
        """Say why an undo leaves it alone."""
        return f"changed while {self.command[:80]} ran, by it or by you; --all takes it back too"


@dataclass(slots=True)
class _Work:
    """What one task changed, except what it took back itself while it ran."""

    entries: list[JournalEntry]
    creations: list[Creations]
    removed: set[str]
    """Links and directories that an undo removed."""

    @property
    def sure(self) -> list[JournalEntry]:
        return [entry for entry in self.entries if not entry.unsure]

    @property
    def at(self) -> int:
        times = [entry.at for entry in self.entries] + [
            creations.at for creations in self.creations
        ]
        return max(times)

    @property
    def made_paths(self) -> tuple[str, ...]:
        return tuple(path for creations in self.creations for path in creations.paths)


def list_traces(journal: Journal) -> list[Trace]:
    """Return the tasks that changed something, newest first."""
    history = journal.history()
    gone = history.undone()
    traces = [
        _trace(trace_id, work, gone, history, journal.root)
        for trace_id, work in _works(history, gone).items()
    ]
    return sorted(traces, key=lambda trace: trace.at, reverse=True)


def taken_back(journal: Journal) -> dict[str, bool]:
    """Of each task: whether something of it is taken back now, were it only one of its files.

    A task that made only links and directories is left out until an undo removed some of them.
    What may be the user's work is not counted.
    """
    history = journal.history()
    gone = history.undone()
    works = _works(history, gone)
    return {
        trace_id: any(entry.id in gone for entry in work.sure) or bool(work.removed)
        for trace_id, work in works.items()
        if work.sure or work.removed
    }


def doubtful_changes(history: History, traces: Container[str]) -> list[DoubtfulChange]:
    """Return what may be the user's work, too, and was not taken back; oldest first."""
    gone = history.undone()
    return [
        doubtful(entry)
        for entry in changes_of(history)
        if entry.unsure and entry.trace_id in traces and entry.id not in gone
    ]


def doubtful(entry: JournalEntry) -> DoubtfulChange:
    """Return an entry that is nobody's for certain."""
    return DoubtfulChange(entry.trace_id, entry.path, entry.unsure, entry.before, entry.after)


def find_undo(home: Path, root: Path, trace_id: str) -> TakenBack:
    """Return how much of a task's work is taken back now, without opening the root."""
    history = read_history(home, root)
    gone = history.undone()
    work = _works(history, gone).get(trace_id)
    if work is None:
        return TakenBack(Extent.UNKNOWN)
    steps = [gone[entry.id] for entry in work.entries if entry.id in gone]
    latest = max(steps, key=lambda step: step.at, default=None)
    part = Extent.PART if steps or work.removed else Extent.NOTHING
    extent = Extent.ALL if _all_taken(work, gone) else part
    return TakenBack(extent, latest.trace_id if latest else "")


def changes_of(history: History) -> Iterator[JournalEntry]:
    """Yield what changed something: a file written again as it was leaves nothing to take back."""
    return (entry for entry in history.entries if entry.changes)


def _works(history: History, gone: dict[str, StepInfo]) -> dict[str, _Work]:
    works: dict[str, _Work] = {}

    def work_of(trace_id: str) -> _Work:
        return works.setdefault(trace_id, _Work([], [], set()))

    for entry in changes_of(history):
        # A repair that did not help is no part of what its task did.
        if entry.id not in gone or gone[entry.id].during != entry.trace_id:
            work_of(entry.trace_id).entries.append(entry)
    removed = {(u.trace_id, path) for u in history.unmade if u.during for path in u.paths}
    for creations in history.creations:
        if any((creations.trace_id, path) not in removed for path in creations.paths):
            work_of(creations.trace_id).creations.append(creations)
    for unmade in history.unmade:
        if unmade.trace_id in works and not unmade.during:
            works[unmade.trace_id].removed.update(unmade.paths)
    return works


def _all_taken(work: _Work, gone: dict[str, StepInfo]) -> bool:
    """Judge by the files, and by links and directories where a task made nothing else."""
    if work.entries:
        sure = all(entry.id in gone for entry in work.entries if not entry.unsure)
        return sure and any(entry.id in gone for entry in work.entries)
    return work.removed.issuperset(work.made_paths)


def _trace(
    trace_id: str, work: _Work, gone: dict[str, StepInfo], history: History, root: Root
) -> Trace:
    left = list(_standing(root, work.creations))
    undone = _all_taken(work, gone) and bool(work.entries or not left)
    sure = any(entry.id not in gone and not entry.unsure for entry in work.entries)
    return Trace(
        trace_id,
        work.at,
        tuple(sorted({entry.path for entry in work.entries})) or work.made_paths,
        undone=undone,
        is_undo=any(
            entry.step in history.steps and history.steps[entry.step].undoes
            for entry in work.entries
        ),
        stands=not undone and bool(sure or left),
    )


def _standing(root: Root, created: Iterable[Creations]) -> Iterator[str]:
    for group in created:
        yield from standing(root, group)
