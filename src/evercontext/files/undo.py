"""Taking back what a task did, and nothing that anybody did since."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import DiskFull, EverContextError, IoFailed
from evercontext.files import io
from evercontext.files.clock import instant
from evercontext.files.io import Content
from evercontext.files.journal import Change, Journal, parts_of
from evercontext.files.journal_records import Entry, History
from evercontext.files.links_and_directories import Made, Unmade, remove, standing
from evercontext.files.os_errors import explained
from evercontext.files.paths import SafePath
from evercontext.files.policy import UNRESTRICTED
from evercontext.files.traces import changes_of

_CHANGED = "changed since"


@dataclass(frozen=True, slots=True)
class Kept:
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
    kept: tuple[Kept, ...] = ()
    partly: tuple[str, ...] = ()
    """Files taken back only to somebody else's edit in between."""
    memories: int = 0
    """Memories of this work that went with it, or came back with it."""
    moved: tuple[str, ...] = ()
    """Where the new folders of installed programs are now, which are among ``removed``."""
    reversible: bool = False
    """There are files among it: links, empty directories and folders come back by hand alone."""


@dataclass(slots=True)
class _Plan:
    change: Change
    entries: list[Entry]
    partly: bool


def undo(
    journal: Journal,
    traces: Iterable[str],
    *,
    since: int = 0,
    trace_id: str | None = None,
    dry_run: bool = False,
    everything: bool = False,
    during: str = "",
) -> Undone:
    """Take back the changes of ``traces`` made after the instant ``since``.

    A file is only touched while it is exactly as the task left it. The undo is a step of its own in
    the journal, under ``trace_id``: all or nothing, and itself undoable. ``dry_run`` only says what
    would happen. A file that changed while a command ran that is not expected to change it is kept,
    unless ``everything`` is wanted. ``during`` names the task that takes back its own work.
    """
    own, wanted = trace_id or str(uuid.uuid4()), set(traces)
    history = journal.history()
    gone = history.undone()
    chains: dict[str, list[Entry]] = {}
    doubts: dict[str, str] = {}
    for entry in changes_of(history):
        if entry.trace_id not in wanted or entry.at <= since or entry.id in gone:
            continue
        if entry.unsure and not everything:
            doubts[entry.path] = entry.unsure
        else:
            chains.setdefault(entry.path, []).append(entry)
    made = [one for one in history.made if one.trace_id in wanted and one.at > since]
    with ExitStack() as held, explained(writing=True):
        held.enter_context(journal.locks.hold(chains))
        plans, kept = _plan(journal, history, chains, held)
        if plans and not dry_run:
            taken = [entry for plan in plans for entry in plan.entries]
            with journal.step(own, [entry.id for entry in taken], during) as step:
                journal.apply([plan.change for plan in plans], own, step)
            for entry in sorted(taken, key=lambda entry: -entry.at):
                journal.remove_directories(entry.directories)
        beside: dict[str, Path | None] = {}
        for one in made:
            beside |= _unmade(journal, one, dry_run, during)
    return _report(own, plans, [*_in_doubt(kept, doubts, chains)], beside)


def _unmade(journal: Journal, made: Made, dry_run: bool, during: str) -> dict[str, Path | None]:
    if dry_run:
        return dict.fromkeys(standing(journal.root, made))
    removed = remove(journal.root, made, journal.quarantine)
    if removed:
        journal.record_removal(Unmade(made.trace_id, instant(), tuple(removed), during))
    return removed


def _in_doubt(
    kept: Sequence[Kept], doubts: dict[str, str], chains: Mapping[str, object]
) -> Iterator[Kept]:
    """What was kept, with the likelier reason where a command ran meanwhile."""
    for one in kept:
        doubt = one.path in doubts and one.reason == _CHANGED
        yield Kept(one.path, _meanwhile(doubts[one.path])) if doubt else one
    for path, command in doubts.items():
        if path not in chains:
            yield Kept(path, _meanwhile(command))


def _meanwhile(command: str) -> str:
    return f"changed while {command[:80]} ran, by it or by you; --all takes it back too"


def _plan(
    journal: Journal, history: History, chains: dict[str, list[Entry]], held: ExitStack
) -> tuple[list[_Plan], list[Kept]]:
    plans: list[_Plan] = []
    kept: list[Kept] = []
    for path, chain in chains.items():
        try:
            with explained():
                safe = held.enter_context(journal.root.place(parts_of(path)))
                plan = _plan_one(journal, history, safe, chain)
        except (DiskFull, IoFailed):
            raise
        except EverContextError as error:
            kept.append(Kept(path, str(error)))
            continue
        if isinstance(plan, _Plan):
            plans.append(plan)
        elif plan:
            kept.append(Kept(path, plan))
    return plans, kept


def _plan_one(
    journal: Journal, history: History, safe: SafePath, chain: list[Entry]
) -> _Plan | str | None:
    now = io.read_if_there(safe, UNRESTRICTED)
    taken, broken = _walk_back(_hash(now), chain, history.done)
    if not taken:
        return _CHANGED if broken else None
    target = taken[-1]
    old = None if target.before is None else journal.blob(target.before, history)
    if target.before is not None and old is None:
        return "its old content is no longer kept"
    return _Plan(Change(safe, now, old, target.before_mode), taken, broken)


def _walk_back(now: str | None, chain: Sequence[Entry], done: set[str]) -> tuple[list[Entry], bool]:
    """Follow the chain of hashes from the present; return how far it holds, and if it broke."""
    taken: list[Entry] = []
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
    own: str, plans: list[_Plan], kept: list[Kept], beside: Mapping[str, Path | None]
) -> Undone:
    return Undone(
        own,
        restored=tuple(p.change.path.relative for p in plans if p.change.after is not None),
        removed=(*(p.change.path.relative for p in plans if p.change.after is None), *beside),
        kept=tuple(kept),
        partly=tuple(p.change.path.relative for p in plans if p.partly),
        moved=tuple(str(place) for place in beside.values() if place),
        reversible=bool(plans),
    )
