"""Undo and rewind, for the command line, the chat and the console."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evercontext.domain.event import Audit
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import NotFound
from evercontext.files import task_changes as journal_traces
from evercontext.files import undo as journal_undo
from evercontext.files.journal import Journal
from evercontext.files.task_changes import Trace
from evercontext.files.undo import SkippedFile, Undone

__all__ = [
    "Checkpoint",
    "SkippedFile",
    "Trace",
    "Undone",
    "audit_lines",
    "checkpoint",
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
        journal_undo.undo, journal, [trace_id], dry_run=dry_run, everything=everything
    )


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
