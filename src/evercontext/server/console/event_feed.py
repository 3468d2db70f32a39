"""Feed open pages with new events: one task reads the log for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from evercontext.events.log_index import Ledger
from evercontext.server.console.kpi_history import KpiHistory

LOOK_EVERY = 0.1
"""Seconds between looks for what other processes wrote; our own events are looked for at once."""
_PULSE = 0.05
_MOST_TOUCHED = 20_000

T = TypeVar("T")


class EventFeed:
    """Share one ledger among all pages; it is read only while a page is open."""

    def __init__(self, directory: Path) -> None:
        self._ledger = Ledger(directory)
        self.history = KpiHistory(directory)
        self._busy = asyncio.Lock()
        self._changed = asyncio.Event()
        self._nudge = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pulse: asyncio.TimerHandle | None = None
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
            async with asyncio.timeout(seconds):
                while not self.closed and self._number <= number:
                    await self._changed.wait()
        except TimeoutError:
            return

    async def _read_on(self) -> None:
        self._loop = asyncio.get_running_loop()
        while self._watchers and not self.closed:
            before = self._number
            self._nudge.clear()
            async with self._busy:
                await self._refresh()
            if self._number > before:
                self._notify()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await self._nudge.wait()
        self._loop = None

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def look_soon(self) -> None:
        """Say that this process has written something; any thread may say so."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._nudge.set)

    def wake(self) -> None:
        """Wake whoever waits, a moment later, for all that happens in that moment together."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake_soon)

    def _wake_soon(self) -> None:
        if self._pulse is None and self._loop is not None:
            self._pulse = self._loop.call_later(_PULSE, self._beat)

    def _beat(self) -> None:
        self._pulse = None
        self._number += 1
        self._notify()

    def stop(self) -> None:
        """End the feed for every page that waits."""
        self.closed = True
        self._notify()
        self._nudge.set()

    async def close(self) -> None:
        """Stop reading."""
        self.stop()
        if self._pulse is not None:
            self._pulse.cancel()
        if self._task is not None:
            await asyncio.wait([self._task])
