"""Feed open pages with new events: one task reads the log for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from evercontext.events.log_index import Ledger
from evercontext.server.console.kpi_history import KpiHistory

LOOK_EVERY = 0.25
_MOST_TOUCHED = 20_000

T = TypeVar("T")


class EventFeed:
    """Share one ledger among all pages; it is read only while a page is open."""

    def __init__(self, directory: Path) -> None:
        self._ledger = Ledger(directory)
        self.history = KpiHistory(directory)
        self._busy = asyncio.Lock()
        self._changed = asyncio.Condition()
        self._touched: deque[tuple[int, str]] = deque(maxlen=_MOST_TOUCHED)
        self._number = 0
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self.closed = False

    async def look(self, reading: Callable[[Ledger], T]) -> T:
        """Read from the ledger, brought up to date first, without holding the server up."""
        async with self._busy:
            await self._refresh()
            return await asyncio.to_thread(reading, self._ledger)

    async def _refresh(self) -> None:
        fresh = await asyncio.to_thread(self._ledger.refresh)
        for trace_id in fresh:
            self._number += 1
            self._touched.append((self._number, trace_id))

    @property
    def number(self) -> int:
        """Grows whenever a trace has something new."""
        return self._number

    def touched_since(self, number: int) -> list[str] | None:
        """The traces with something new since ``number``; ``None`` if that is too long ago."""
        if self._touched and number < self._touched[0][0] - 1:
            return None
        return list(dict.fromkeys(trace for at, trace in self._touched if at > number))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Keep the log under watch for the time of the block."""
        self._watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._read_on())
        try:
            yield
        finally:
            self._watchers -= 1

    async def wait(self, number: int, seconds: float) -> None:
        """Wait until something is newer than ``number``, but no longer than ``seconds``."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.closed or self._number > number)
        except TimeoutError:
            return

    async def _read_on(self) -> None:
        while self._watchers and not self.closed:
            before = self._number
            async with self._busy:
                await self._refresh()
            if self._number > before:
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(LOOK_EVERY)

    def stop(self) -> None:
        """End the feed for every page that waits."""
        self.closed = True
        self._ending = asyncio.ensure_future(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def close(self) -> None:
        """Stop reading."""
        self.closed = True
        await self._wake()
        if self._task is not None:
            await asyncio.wait([self._task])
