"""Undo and rewind, for the command line, the chat and the console."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evercontext.domain.event import Audit, Diff
from evercontext.domain.tool import FileChange
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import EverContextError, NotFound
from evercontext.files import file_io
from evercontext.files import task_changes as journal_traces
from evercontext.files import undo as journal_undo
from evercontext.files.journal import Journal, parts_of
from evercontext.files.policy import UNRESTRICTED
from evercontext.files.protected_paths import is_secret
from evercontext.files.task_changes import DoubtfulChange, Trace
from evercontext.files.undo import SkippedFile, Undone
from evercontext.tools.diff import describe

__all__ = [
    "Checkpoint",
    "DoubtfulChange",
    "SkippedFile",
    "Trace",
    "Undone",
    "audit_lines",
    "checkpoint",
    "diff_of",
    "doubtful_changes",
    "latest",
    "list_traces",
    "rewind",
    "taken_back",
    "undo",
]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An instant to go back to."""

    name: str
    at: int


async def list_traces(journal: Journal) -> list[Trace]:
    """Return the tasks that changed something, newest first."""
    return await asyncio.to_thread(journal_traces.list_traces, journal)


async def taken_back(journal: Journal) -> dict[str, bool]:
    """Of each task: whether something of it is taken back now."""
    return await asyncio.to_thread(journal_traces.taken_back, journal)


async def undo(
    journal: Journal,
    trace_id: str | None = None,
    *,
    dry_run: bool = False,
    everything: bool = False,
    only_doubtful: bool = False,
) -> Undone:
    """Take back one task's changes; without a name the latest one that still stands.

    Undoing the trace of an undo brings the changes back. NotFound if there is nothing to take back.
    """
    if trace_id is None:
        trace_id = await latest(journal)
    elif not any(trace.trace_id == trace_id for trace in await list_traces(journal)):
        raise NotFound(
            f"no changes of {trace_id} are known here", fix="List them with: undo --list"
        )
    return await asyncio.to_thread(
        journal_undo.undo,
        journal,
        [trace_id],
        dry_run=dry_run,
        everything=everything,
        only_doubtful=only_doubtful,
    )


async def doubtful_changes(journal: Journal, traces: Sequence[str]) -> list[DoubtfulChange]:
    """Return what changed while commands in the background of these tasks ran, by them or not."""

    def read() -> list[DoubtfulChange]:
        return journal_traces.doubtful_changes(journal.history(), traces)

    return await asyncio.to_thread(read)


async def diff_of(journal: Journal, change: DoubtfulChange) -> Diff | None:
    """Return how a file changed; nothing if it is not as it was left, or not known."""

    def compare() -> Diff | None:
        before = journal.blob(change.before, journal.history()) if change.before else None
        if any(map(is_secret, change.path.split("/"))) or (before is None) != (
            change.before is None
        ):
            return None
        with suppress(EverContextError), journal.root.place(parts_of(change.path)) as safe:
            now = file_io.read_if_there(safe, UNRESTRICTED)
            if (now.sha256 if now else None) == change.after:
                after = now.data if now else None
                return describe(FileChange(change.path, _text(before), _text(after)))
        return None

    return await asyncio.to_thread(compare)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def audit_lines(journal: Journal, done: Undone, door: str) -> Iterator[Audit]:
    """Return the audit lines of an undo, one for each file, those that it left alone too (E25)."""
    for path in (*done.restored, *done.removed):
        yield _audit_line(path, 200, door, _size(journal.root.path / path))
    for skipped in done.skipped:
        yield _audit_line(skipped.path, 409, door)


def _audit_line(path: str, status: int, door: str, size: int = 0) -> Audit:
    return Audit(method="undo", path=escaped_line(path, 1024), size=size, status=status, door=door)


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0


async def checkpoint(journal: Journal, name: str) -> Checkpoint:
    """Remember this instant durably under ``name``."""
    return Checkpoint(name, await asyncio.to_thread(journal.mark, name))


async def rewind(journal: Journal, traces: Sequence[str], to: Checkpoint | str) -> Undone:
    """Take back what ``traces`` changed after a checkpoint, given by itself or by its name."""
    if isinstance(to, str):
        marks = (await asyncio.to_thread(journal.history)).marks
        if to not in marks:
            raise NotFound(f"no checkpoint {to}")
        to = Checkpoint(to, marks[to])
    return await asyncio.to_thread(journal_undo.undo, journal, traces, since=to.at)


async def latest(journal: Journal) -> str:
    """Return the latest task that still stands; NotFound if there is none."""
    traces = await list_traces(journal)
    for trace in traces:
        if trace.stands and not trace.is_undo:
            return trace.trace_id
    # What a background command changed between two tasks is listed, and nobody's for certain.
    raise NotFound(
        "nothing to undo", fix="List what is known with: undo --list" if traces else None
    )
