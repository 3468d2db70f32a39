"""Define the store: the interface of every database.

SQL is written once for all databases: ``?`` placeholders, ``INSERT … ON CONFLICT``, ``RETURNING``,
no vendor functions. Values are parameters, always; SQL is never built from input.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from evercontext.errors import StoreGone

Row = dict[str, Any]
Parameters = Sequence[Any]

LOCKED_OUT = "Correct the user, the password or the database in EC_DATABASE_URL"
"""What helps with a server that runs and lets nobody in by that address."""
DATABASE = "*"
"""The lock of a transaction that no other one may run beside."""
READ_SECONDS = 30.0
"""No read runs longer than this unless its caller says so."""


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What happened while the database was opened; ``warnings`` are for the user."""

    location: str
    version: int
    migrated_from: int | None = None
    """The older schema this database had, or ``None`` if nothing was migrated."""
    backup: str | None = None
    """The copy made before migrating."""
    moved_to: str | None = None
    """Where a damaged database was put aside."""
    recovered_rows: int = 0
    shared: bool = False
    """Other machines may use it, too: their processes cannot be seen from here."""
    outbox: Path | None = None
    """Where on this machine things wait while the server is away."""
    warnings: tuple[str, ...] = ()


class Queries(Protocol):
    """The statements a store and an open transaction both understand."""

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row; raise ``StoreTimeout`` after ``seconds``.

        A file counts how long the query works, a server how long it takes.
        """
        ...

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row, or ``None``."""
        ...

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement and return how many rows it changed."""
        ...

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each of ``rows``: all of them or none."""
        ...


Listener = Callable[[bool], Awaitable[object]]
"""Told ``True`` when the server is back, ``False`` when it has gone."""


@runtime_checkable
class MayBeOffline(Protocol):
    """A store whose server may be away: callers that can wait go on without it."""

    @property
    def problem(self) -> StoreGone | None:
        """Why it cannot be asked now, if so."""
        ...

    def on_change(self, listener: Listener) -> None:
        """Tell of the server's going and coming back from now on."""
        ...


class Store(Queries, Protocol):
    """A database. Outside a transaction every statement stands alone and fetches only read.

    ``INSERT … RETURNING`` therefore belongs into a transaction. While a task has a transaction
    open it talks to that transaction, not to the store: the store refuses.
    """

    @property
    def report(self) -> OpenReport:
        """What happened while it was opened."""
        ...

    async def holding(self, words: Sequence[str]) -> tuple[str, list[str]]:
        """Return the condition that a message ``m`` holds every word, and its values."""
        ...

    def transaction(self, lock: str = DATABASE) -> AbstractAsyncContextManager[Queries]:
        """Open a write transaction: committed at the end, rolled back on any exception.

        ``lock`` is what it must have to itself. By default that is the database: what it has read
        is still so when it writes. Other transactions of the same ``lock`` take turns; those of
        another do not wait, and with an empty one only single rows are waited for. A file has one
        writer at a time in any case.
        """
        ...

    async def wipe_deleted(self) -> None:
        """Leave as little of deleted rows on the disk as the database can."""
        ...

    async def close(self) -> None:
        """Finish what is queued and give the database back. Safe to call twice."""
        ...
