"""Lock the writer: one task of the process writes at a time, whatever the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evercontext.errors import StoreBusy, StoreProblem


class WriteLock:
    """Lock that refuses a task that already holds it, instead of a deadlock."""

    def __init__(self, busy_seconds: float) -> None:
        self._busy_seconds = busy_seconds
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait for the writer; refuse a task that already has it, for it would wait for ever."""
        self.refuse_holder()
        try:
            async with asyncio.timeout(self._busy_seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreBusy("a transaction of this process holds the database") from None
        self._holder = asyncio.current_task()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()

    @asynccontextmanager
    async def hold_to_close(self) -> AsyncIterator[None]:
        """Wait as long as it takes: closing gives up on nobody."""
        self.refuse_holder()
        async with self._lock:
            yield

    def refuse_holder(self) -> None:
        """Raise in the task that is writing: it has a transaction to use."""
        if self._holder is not None and self._holder is asyncio.current_task():
            raise StoreProblem("a transaction is open in this task: use it, not the store")
