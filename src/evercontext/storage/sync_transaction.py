"""Run a transaction synchronously on the thread of its connection.

Every statement of a transaction that is open on the event loop costs two changes of thread, which
is more than a small statement itself costs. What is written here awaits nothing but its own
statements, so it can run through where the connection is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from evercontext.errors import StoreProblem
from evercontext.storage.sqlite_connection import stopped_after
from evercontext.storage.store import READ_SECONDS, Parameters, Queries, Row

_Result = TypeVar("_Result")
Work = Callable[[Queries], Coroutine[Any, Any, _Result]]
"""The statements of one transaction, and what comes of them."""


class SyncTransaction:
    """Statements of a transaction that run synchronously when they are awaited."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self._link = link

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Return every row, uncommitted ones included."""
        with stopped_after(self._link, seconds):
            return self._link.execute(sql, parameters).fetchall()

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Return the first row, or ``None``; may be an ``INSERT … RETURNING``."""
        return next(iter(await self.fetch_all(sql, parameters, seconds=seconds)), None)

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement."""
        return max(0, self._link.execute(sql, parameters).rowcount)

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Run one statement for each row."""
        self._link.executemany(sql, rows)


def run_synchronously(link: sqlite3.Connection, work: Work[_Result]) -> _Result:
    """Run the statements of ``work`` on a connection whose transaction is open."""
    steps = work(SyncTransaction(link))
    try:
        steps.send(None)
    except StopIteration as done:
        result: _Result = done.value
        return result
    finally:
        steps.close()
    raise StoreProblem("a transaction that runs in one go may wait for its statements alone")
