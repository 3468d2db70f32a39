"""Undo the file changes of a task, and nothing that was changed since."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evercontext.errors import DiskFull, EverContextError, IoFailed
from evercontext.files import file_io
from evercontext.files.clock import journal_clock
from evercontext.files.contained_paths import SafePath
from evercontext.files.file_io import Content
from evercontext.files.journal import Change, Journal, parts_of
from evercontext.files.journal_records import History, JournalEntry
from evercontext.files.links_and_directories import Creations, RemovedCreations, remove, standing
from evercontext.files.os_errors import explained
from evercontext.files.policy import UNRESTRICTED
from evercontext.files.task_changes import DoubtfulChange, changes_of, doubtful

_CHANGED, _DELETED = "changed since", "deleted since"


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was left as it is, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did. Undoing ``trace_id`` brings files back, if there are any."""

    trace_id: str
    restored: tuple[str, ...] = ()
    """Files that have their old content again."""
    removed: tuple[str, ...] = ()
    """Files that the task had made and that are gone again."""
    skipped: tuple[SkippedFile, ...] = ()
    partly: tuple[str, ...] = ()
    """Files taken back only to somebody else's edit in between."""
    memories: int = 0
    """Memories of this work that went with it, or came back with it."""
    moved: tuple[str, ...] = ()
    """Where the new folders of installed programs are now, which are among ``removed``."""
    reversible: bool = False
    """There are files among it: links, empty directories and folders come back by hand alone."""

    def as_json(self) -> dict[str, Any]:
        """Return it as programs have always read it: what was skipped is called ``kept``."""
        fields = asdict(self)
        return {"kept" if name == "skipped" else name: value for name, value in fields.items()}


@dataclass(slots=True)
class _UndoPlan:
    change: Change
    entries: list[JournalEntry]
    partly: bool


def undo(
    journal: Journal,
    traces: Iterable[str],
    *,
    since: int = 0,
    trace_id: str | None = None,
    dry_run: bool = False,
    everything: bool = False,
    only_doubtful: bool = False,
    during: str = "",
) -> Undone:
    """Take back the changes of ``traces`` made after the instant ``since``.

    A file is only touched while it is exactly as the task left it. The undo is a step of its own in
    the journal, under ``trace_id``: all or nothing, and itself undoable. ``dry_run`` only says what
    would happen. A file that changed while a command ran that is not expected to change it is kept,
    unless ``everything`` or ``only_doubtful`` such files are wanted. ``during`` names the task that
    takes back its own work.
    """
    own, tasks = trace_id or str(uuid.uuid4()), set(traces)
    history = journal.history()
    gone = history.undone()
    chains: dict[str, list[JournalEntry]] = {}
    doubts: dict[str, DoubtfulChange] = {}
    for entry in changes_of(history):
        if entry.trace_id not in tasks or entry.at <= since or entry.id in gone:
            continue
        if only_doubtful and not entry.unsure:
            continue
        if entry.unsure and not (everything or only_doubtful):
            doubts[entry.path] = doubtful(entry)
        else:
            chains.setdefault(entry.path, []).append(entry)
    created = [
        creations
        for creations in history.creations
        if creations.trace_id in tasks and creations.at > since and not only_doubtful
    ]
    with ExitStack() as held, explained(writing=True):
        held.enter_context(journal.locks.hold(chains))
        plans, skipped = _plan(journal, history, chains, held)
        if plans and not dry_run:
            taken = [entry for plan in plans for entry in plan.entries]
            with journal.step(own, [entry.id for entry in taken], during) as step:
                journal.apply([plan.change for plan in plans], own, step)
            for entry in sorted(taken, key=lambda entry: -entry.at):
                journal.remove_directories(entry.directories)
        beside: dict[str, Path | None] = {}
        for creations in created:
            beside |= _unmade(journal, creations, dry_run, during)
    return _report(own, plans, [*_in_doubt(skipped, doubts, chains)], beside)


def _unmade(
    journal: Journal, creations: Creations, dry_run: bool, during: str
) -> dict[str, Path | None]:
    if dry_run:
        return dict.fromkeys(standing(journal.root, creations))
    removed = remove(journal.root, creations, journal.quarantine)
    if removed:
        journal.record_removal(
            RemovedCreations(creations.trace_id, journal_clock.instant(), tuple(removed), during)
        )
    return removed


def _in_doubt(
    skipped: Sequence[SkippedFile], doubts: dict[str, DoubtfulChange], chains: Mapping[str, object]
) -> Iterator[SkippedFile]:
    """What was kept, with the likelier reason where a command ran meanwhile."""
    for file in skipped:
        doubt = file.path in doubts and file.reason in (_CHANGED, _DELETED)
        yield SkippedFile(file.path, doubts[file.path].reason) if doubt else file
    for path, change in doubts.items():
        if path not in chains:
            yield SkippedFile(path, change.reason)


def _plan(
    journal: Journal, history: History, chains: dict[str, list[JournalEntry]], held: ExitStack
) -> tuple[list[_UndoPlan], list[SkippedFile]]:
    plans: list[_UndoPlan] = []
    skipped: list[SkippedFile] = []
    for path, chain in chains.items():
        try:
            with explained():
                safe = held.enter_context(journal.root.place(parts_of(path)))
                plan = _plan_one(journal, history, safe, chain)
        except (DiskFull, IoFailed):
            raise
        except EverContextError as error:
            skipped.append(SkippedFile(path, str(error)))
            continue
        if isinstance(plan, _UndoPlan):
            plans.append(plan)
        elif plan:
            skipped.append(SkippedFile(path, plan))
    return plans, skipped


def _plan_one(
    journal: Journal, history: History, safe: SafePath, chain: list[JournalEntry]
) -> _UndoPlan | str | None:
    now = file_io.read_if_there(safe, UNRESTRICTED)
    taken, broken = _walk_back(_hash(now), chain, history.done)
    if not taken:
        reason = _DELETED if now is None else _CHANGED
        return reason if broken else None
    target = taken[-1]
    old = None if target.before is None else journal.blob(target.before, history)
    if target.before is not None and old is None:
        return "its old content is no longer kept"
    return _UndoPlan(Change(safe, now, old, target.before_mode), taken, broken)


def _walk_back(
    now: str | None, chain: Sequence[JournalEntry], done: set[str]
) -> tuple[list[JournalEntry], bool]:
    """Follow the chain of hashes from the present; return how far it holds, and if it broke."""
    taken: list[JournalEntry] = []
    for entry in reversed(chain):
        if entry.after == now:
            taken.append(entry)
            now = entry.before
        elif entry.id in done:
            return taken, True
        # else: a write that failed half-way and never took place
    return taken, False


def _hash(content: Content | None) -> str | None:
    return content.sha256 if content else None


def _report(
    own: str, plans: list[_UndoPlan], skipped: list[SkippedFile], beside: Mapping[str, Path | None]
) -> Undone:
    return Undone(
        own,
        restored=tuple(p.change.path.relative for p in plans if p.change.after is not None),
        # What the task made and removed again was gone already.
        removed=(
            *(p.change.path.relative for p in plans if p.change.before and p.change.after is None),
            *beside,
        ),
        skipped=tuple(skipped),
        partly=tuple(p.change.path.relative for p in plans if p.partly),
        moved=tuple(str(place) for place in beside.values() if place),
        reversible=bool(plans),
    )
