"""A database server that did not answer: every question gets that answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from evercontext.errors import StoreGone
from evercontext.storage.store import READ_SECONDS, OpenReport, Parameters, Queries, Row


class AwayStore:
    """A ``Store`` for callers that can go on without one, because what they keep can wait."""

    def __init__(self, problem: StoreGone, report: OpenReport) -> None:
        self._problem, self._report = problem, report

    @property
    def report(self) -> OpenReport:
        """Where it would be, and where what is kept waits for it."""
        return self._report

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> list[Row]:
        """Say that the server is away."""
        raise self._problem

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = READ_SECONDS
    ) -> Row | None:
        """Say that the server is away."""
        raise self._problem

    async def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Say that the server is away."""
        raise self._problem

    async def execute_many(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Say that the server is away."""
        raise self._problem

    async def holding(self, words: Sequence[str]) -> tuple[str, list[str]]:
        """Say that the server is away."""
        raise self._problem

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Queries]:
        """Say that the server is away."""
        raise self._problem
        yield self

    async def wipe_deleted(self) -> None:
        """Say that the server is away."""
        raise self._problem

    async def close(self) -> None:
        """There is nothing to give back."""
