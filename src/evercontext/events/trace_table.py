"""Index traces in a database table; the event log can always rebuild it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from evercontext.domain.event import Event, Final, Task
from evercontext.errors import StoreProblem
from evercontext.events import log_reader
from evercontext.events.log import EventLog
from evercontext.events.redaction import Clean, unchanged

_BEGIN = """
    INSERT INTO traces (trace_id, kind, title, status, started_at, root, session_id, model, segment)
    VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?) ON CONFLICT (trace_id) DO NOTHING
"""
_END = "UPDATE traces SET status = ?, ended_at = ? WHERE trace_id = ?"
_LONGEST_TITLE = 200


class Database(Protocol):
    """The statements that the index needs of a store."""

    async def fetch_all(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return every row."""
        ...

    async def fetch_one(self, sql: str, parameters: Sequence[Any] = ()) -> dict[str, Any] | None:
        """Return the first row, or ``None``."""
        ...

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement and return how many rows it changed."""
        ...


class TraceIndex:
    """Subscribe to the log and store one row per task."""

    def __init__(
        self, store: Database, events: EventLog, directory: Path, clean: Clean = unchanged
    ) -> None:
        self._store, self._events, self._directory = store, events, directory
        self._clean = clean
        self._pending: asyncio.Queue[Event | None] = asyncio.Queue()
        self._worker = asyncio.create_task(self._write_pending())
        self._stop = events.subscribe(self._receive)

    def _receive(self, event: Event) -> None:
        if isinstance(event.body, Task | Final):
            self._pending.put_nowait(event)

    async def _write_pending(self) -> None:
        while (event := await self._pending.get()) is not None:
            try:
                await self._store_event(event, self._events.segment)
            except StoreProblem:
                # The log has it; `recent` finds it there.
                continue

    async def _store_event(self, event: Event, segment: Path | None) -> None:
        match event.body:
            case Task() as task:
                # Cut last: half a secret would not be known for one.
                title = self._clean(task.text)[:_LONGEST_TITLE]
                place = segment.name if segment else None
                row = (event.trace_id, task.door, title, event.at, task.root, task.session)
                await self._store.execute(_BEGIN, (*row, task.model, place))
            case Final() as final:
                await self._store.execute(_END, (final.status, event.at, event.trace_id))

    async def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        """Return the newest traces first."""
        return await self._store.fetch_all(
            "SELECT * FROM traces ORDER BY started_at DESC LIMIT ?", (limit,)
        )

    async def rebuild(self) -> int:
        """Read every segment again; return how many tasks are known afterwards."""
        for segment in log_reader.segments(self._directory):
            for event in await asyncio.to_thread(_events_in, segment):
                if isinstance(event.body, Task | Final):
                    await self._store_event(event, segment)
        row = await self._store.fetch_one("SELECT count(*) AS n FROM traces")
        return int(row["n"]) if row else 0

    async def close(self) -> None:
        """Write what is pending and stop listening."""
        self._stop()
        self._pending.put_nowait(None)
        await self._worker


def _events_in(segment: Path) -> list[Event]:
    return list(log_reader.read(segment))
