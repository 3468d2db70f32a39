"""Lock writers: so many tasks of the process write at a time, whatever the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evercontext.errors import StoreBusy, StoreProblem


class WriteLock:
    """Lock for ``writers`` tasks; a task that already holds it is refused, not left to wait."""

    def __init__(self, busy_seconds: float, writers: int = 1) -> None:
        self._busy_seconds, self._writers = busy_seconds, writers
        self._free = asyncio.Semaphore(writers)
        self._holders: set[asyncio.Task[object]] = set()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait for a place; refuse a task that already has one, for it would wait for ever."""
        self.refuse_holder()
        try:
            async with asyncio.timeout(self._busy_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise StoreBusy("a transaction of this process holds the database") from None
        holder = asyncio.current_task()
        assert holder is not None
        self._holders.add(holder)
        try:
            yield
        finally:
            self._holders.discard(holder)
            self._free.release()

    @asynccontextmanager
    async def hold_to_close(self) -> AsyncIterator[None]:
        """Wait for every writer as long as it takes: closing gives up on nobody."""
        self.refuse_holder()
        for _ in range(self._writers):
            await self._free.acquire()
        try:
            yield
        finally:
            for _ in range(self._writers):
                self._free.release()

    def refuse_holder(self) -> None:
        """Raise in a task that is writing: it has a transaction to use."""
        if asyncio.current_task() in self._holders:
            raise StoreProblem("a transaction is open in this task: use it, not the store")
