"""Store for a database server that may be offline: fail at once, reconnect in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from psycopg.errors import ConnectionTimeout

from evercontext.errors import EverContextError, StoreGone
from evercontext.storage.login import Login, current_login
from evercontext.storage.postgres import ATTEMPTS, PostgresStore
from evercontext.storage.store import (
    DATABASE,
    READ_SECONDS,
    Listener,
    OpenReport,
    Parameters,
    Queries,
    Row,
)

PAUSES = (1.0, 2.0, 5.0, 10.0)
"""Seconds between two tries of the background; the last one goes on."""
Open = Callable[[int], Awaitable[PostgresStore]]
"""Opens the server, with so many tries."""


class OfflineStore:
    """A ``Store`` for callers that go on without one, because what they keep can wait.

    A server that has gone costs its three tries once. From then on every question is refused
    without waiting, until somebody who knocked was let in.
    """

    def __init__(
        self, opener: Open, report: OpenReport, *, pauses: Sequence[float] = PAUSES
    ) -> None:
        self._open, self._report, self._pauses = opener, report, pauses
        self._inner: PostgresStore | None = None
        self._problem: StoreGone | None = None
        self._knocking = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self._listeners: list[Listener] = []
        self._closed = False

    async def begin(self) -> None:
        """Open it with all patience, once."""
        try:
            self._inner = await self._open(ATTEMPTS)
        except StoreGone as problem:
            self._leave(problem)

    @property
    def report(self) -> OpenReport:
        """Where it is, or would be, and where what is kept waits for it."""
        if self._inner is None:
            return self._report
        ours = self._report
        if self._inner.needs_login and current_login():
            # What a server's clients say cannot wait: nobody would be logged in for it later.
            return replace(self._inner.report, outbox=None)
        warnings = (*ours.warnings, *self._inner.report.warnings)
        return replace(self._inner.report, outbox=ours.outbox, warnings=warnings)

    @property
    def problem(self) -> StoreGone | None:
        """Why it cannot be asked now, if so."""
        return self._problem

    @property
    def has_memory_search(self) -> bool:
        """Whether the server chooses the candidates of questions about memories."""
        return self._inner is not None and self._inner.has_memory_search

    @property
    def needs_login(self) -> bool:
        """Whether the server shows each user their own rows alone, as far as is known."""
        return self._inner is not None and self._inner.needs_login

    @property
    def login(self) -> Login | None:
        """The login that statements run under."""
        return self._inner.login if self._inner is not None else None

    @property
    def key_owner(self) -> str:
        """Whose keys and rules these are."""
        return self._inner.key_owner if self._inner is not None else ""

    def on_change(self, listener: Listener) -> None:
        """Tell of the server's going and coming back from now on."""
        self._listeners.append(listener)

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row, if the server answers."""
        async with self._server() as inner:
            return await inner.fetch_all(sql, parameters, seconds=seconds)

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row, if the server answers."""
        async with self._server() as inner:
            return await inner.fetch_one(sql, parameters, seconds=seconds)

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement, if the server answers."""
        async with self._server() as inner:
            return await inner.execute(sql, parameters)

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each row, if the server answers."""
        async with self._server() as inner:
            await inner.execute_many(sql, rows)

    async def holding(self, words: Sequence[str]) -> tuple[str, list[str]]:
        """Say that a message holds every word, if the server answers."""
        async with self._server() as inner:
            return await inner.holding(words)

    async def prepare_users(self) -> None:
        """Make the tables of users and the rules, if the server answers."""
        async with self._server() as inner:
            await inner.prepare_users()

    async def index_vectors(self, scope: int, encoder: str, dimensions: int) -> bool:
        """Build the vector index of a scope of very many memories, if the server answers."""
        async with self._server() as inner:
            return await inner.index_vectors(scope, encoder, dimensions)

    @asynccontextmanager
    async def transaction(self, lock: str = DATABASE) -> AsyncIterator[Queries]:
        """Open a write transaction, if the server answers."""
        async with self._server() as inner, inner.transaction(lock) as writing:
            yield writing

    async def wipe_deleted(self) -> None:
        """Free the old versions of rows, if the server answers."""
        async with self._server() as inner:
            await inner.wipe_deleted()

    async def close(self) -> None:
        """Knock no more, and give back what is open."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        if self._inner is not None:
            await self._inner.close()

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[PostgresStore]:
        if self._problem is not None:
            # One that refuses answers at once and may be asked each time; one that keeps silent
            # costs seconds, and nobody but the background waits for it.
            silent = isinstance(self._problem.__cause__, ConnectionTimeout)
            if silent or self._closed:
                raise StoreGone(self._problem.message, fix=self._problem.fix)
            await self._knock()
        assert self._inner is not None
        try:
            yield self._inner
        except StoreGone as problem:
            self._leave(problem)
            raise

    async def _knock(self) -> None:
        """Ask whether it is there: one try, however many wait for it."""
        before = self._problem
        async with self._knocking:
            if self._problem is not before:
                # Somebody else has just found out.
                if self._problem is not None:
                    raise StoreGone(self._problem.message, fix=self._problem.fix)
                return
            try:
                if self._inner is None:
                    self._inner = await self._open(1)
                else:
                    await self._inner.knock()
            except StoreGone as problem:
                self._problem = problem
                raise
            self._problem = None

    def _leave(self, problem: StoreGone) -> None:
        self._problem = problem
        if not self._closed and (self._watch is None or self._watch.done()):
            self._watch = asyncio.create_task(self._look_out())

    async def _look_out(self) -> None:
        """Tell that it has gone, wait until it is back, and tell that."""
        while self._problem is not None:
            await self._tell(False)
            await self._wait()
            await self._tell(True)

    async def _wait(self) -> None:
        tries = 0
        while self._problem is not None:
            await asyncio.sleep(self._pauses[min(tries, len(self._pauses) - 1)])
            tries += 1
            with suppress(EverContextError):
                if self._problem is not None:
                    await self._knock()

    async def _tell(self, back: bool) -> None:
        for listener in self._listeners:
            with suppress(EverContextError):
                await listener(back)
