"""Recover at opening from a process that was killed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evercontext.errors import DiskFull, EverContextError, IoFailed
from evercontext.files import file_io
from evercontext.files.contained_paths import Parts, Root, SafePath
from evercontext.files.file_io import Content
from evercontext.files.generated_directories import GENERATED
from evercontext.files.journal import Journal, parts_of
from evercontext.files.journal_records import History, JournalEntry
from evercontext.files.journal_segments import CLOSED, LIVE, claim
from evercontext.files.path_names import TEMPORARY
from evercontext.files.policy import UNRESTRICTED
from evercontext.files.retention import expired

KEPT_BYTES = 1 << 30
KEPT_DAYS = 60
_STALE_SECONDS = 600.0
_SWEPT_DIRECTORIES = 20_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """What had to be put right."""

    rolled_back: tuple[str, ...] = ()
    """Files of steps that were cut in the middle, now as they were before."""
    left_alone: tuple[str, ...] = ()
    """Files of such steps that somebody has changed since: left alone."""
    swept: int = 0
    """Temporary files removed."""


def open_journal(root: Root, home: Path) -> tuple[Journal, Recovery]:
    """Open a root's journal after finishing what a killed process left half-done."""
    journal = Journal(root, home)
    recovery = recover(journal)
    prune(journal)
    return journal, recovery


def recover(journal: Journal) -> Recovery:
    """Settle every segment whose owner is gone."""
    rolled_back: list[str] = []
    untouched: list[str] = []
    swept = settled = 0
    for path in journal.segments():
        fd = claim(path) if path.suffix == LIVE else None
        if fd is None:
            continue
        try:
            history = History([path])
            swept += sum(_clear(journal, entry) for entry in history.intents)
            back, left = _settle_steps(journal, history)
        except (DiskFull, IoFailed):
            continue  # reading still works; the next opening tries again
        else:
            rolled_back += back
            untouched += left
            path.rename(path.with_suffix(CLOSED))
            settled += 1
        finally:
            os.close(fd)
    if settled:
        alone = not any(path.suffix == LIVE for path in journal.segments())
        swept += sweep(journal.root, 0.0 if alone else _STALE_SECONDS)
    return Recovery(tuple(rolled_back), tuple(untouched), swept)


def prune(journal: Journal) -> None:
    """Drop the oldest segments beyond what is kept."""
    for path in expired(
        journal.segments(),
        most_bytes=KEPT_BYTES,
        most_days=KEPT_DAYS,
        may_go=lambda path: path.suffix == CLOSED,
    ):
        with suppress(FileNotFoundError):
            path.unlink()


def sweep(root: Root, stale_seconds: float) -> int:
    """Remove temporary files that nobody is going to finish; return how many."""
    limit = time.time() - stale_seconds
    pending: list[Parts] = [()]
    swept = visited = 0
    while pending and visited < _SWEPT_DIRECTORIES:
        parts, visited = pending.pop(), visited + 1
        with suppress(OSError):
            fd = root.beneath.open(root.fd, parts, os.O_RDONLY)
            try:
                swept += _sweep_one(root, parts, fd, limit, pending.append)
            finally:
                root.kernel.close(fd)
    return swept


def _sweep_one(
    root: Root, parts: Parts, fd: int, limit: float, enter: Callable[[Parts], None]
) -> int:
    swept = 0
    for name in root.kernel.names(fd):
        with suppress(OSError):
            status = root.kernel.lstat(name, fd)
            if stat.S_ISDIR(status.st_mode) and name not in GENERATED and name != ".git":
                enter((*parts, name))
            elif TEMPORARY.fullmatch(name) and status.st_mtime <= limit:
                root.kernel.unlink(name, fd)
                swept += 1
    return swept


def _settle_steps(journal: Journal, history: History) -> tuple[list[str], list[str]]:
    cut = history.unfinished()
    with journal.locks.hold({entry.path for entry in cut}):
        back = journal.roll_back(cut, history)
    rolled_back = sorted({entry.path for entry in back})
    applied = {entry.path for entry in cut if entry.id in history.done}
    return rolled_back, sorted(applied - set(rolled_back))


def _clear(journal: Journal, entry: JournalEntry) -> bool:
    """Remove what was staged for a change; return True if there was something."""
    with (
        suppress(OSError, EverContextError),
        journal.locks.hold([entry.path]),
        journal.root.place(parts_of(entry.path)) as target,
    ):
        if target.missing:
            return False
        held = file_io.read_if_there(target.sibling(entry.temporary), UNRESTRICTED)
        now = file_io.read_if_there(target, UNRESTRICTED)
        if now is None:
            journal.remove_directories(entry.directories)
        if held is None:
            return False
        if _is_somebodys(held, now, entry):
            _bring_back(target, entry, now)
        else:
            file_io.discard(target, entry.temporary)
        return True
    return False


def _is_somebodys(held: Content, now: Content | None, entry: JournalEntry) -> bool:
    """Tell whether the temporary name holds what an editor saved in the very last moment.

    That is so if the change took place and what it displaced is neither the old content nor a
    beginning of the new one.
    """
    if (now.sha256 if now else None) != entry.after or held.sha256 in (entry.before, entry.after):
        return False
    return now is None or not now.data.startswith(held.data)


def _bring_back(target: SafePath, entry: JournalEntry, now: Content | None) -> None:
    kernel = target.root.kernel
    if now is None:
        kernel.rename_new(entry.temporary, target.name, target.dir_fd)
    else:
        kernel.rename(entry.temporary, target.name, target.dir_fd)
