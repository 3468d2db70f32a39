"""Transactions that run through on the thread of their connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.errors import StoreProblem, StoreTimeout
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Queries
from tests.storage.contract import COUNT, ENDLESS, HELD, KEEP


@pytest.fixture(params=["file", "memory"])
async def store(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[SqliteStore]:
    in_memory = request.param == "memory"
    made = await (SqliteStore.in_memory() if in_memory else SqliteStore.open(tmp_path / "a.db"))
    yield made
    await made.close()


async def test_the_statements_of_one_go_are_kept_together(store: SqliteStore) -> None:
    async def work(t: Queries) -> str:
        await t.execute_many(KEEP, [("a", "1"), ("b", "2")])
        assert await t.execute(KEEP, ("c", "3")) == 1
        found = await t.fetch_one(HELD, ("b",))
        assert await t.fetch_one(HELD, ("z",)) is None
        return str(found and found["value"])

    assert await store.transact(work) == "2"
    assert await store.fetch_one(HELD, ("c",)) == {"value": "3"}


async def test_a_failure_leaves_nothing(store: SqliteStore) -> None:
    before = await store.fetch_one(COUNT)

    async def work(t: Queries) -> None:
        await t.execute(KEEP, ("a", "1"))
        await t.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(StoreProblem):
        await store.transact(work)
    assert await store.fetch_one(COUNT) == before
    await store.execute(KEEP, ("a", "2"))
    assert await store.fetch_one(HELD, ("a",)) == {"value": "2"}


@pytest.mark.case(117)
async def test_a_query_that_runs_away_is_stopped_inside_as_well(store: SqliteStore) -> None:
    async def work(t: Queries) -> None:
        await t.execute(KEEP, ("a", "1"))
        await t.fetch_one(ENDLESS, seconds=0.2)

    with pytest.raises(StoreTimeout):
        await store.transact(work)
    assert await store.fetch_one(HELD, ("a",)) is None


async def test_who_waits_for_anything_else_is_refused_and_rolled_back(store: SqliteStore) -> None:
    async def work(t: Queries) -> None:
        await t.execute(KEEP, ("a", "1"))
        await asyncio.sleep(0)

    with pytest.raises(StoreProblem, match="in one go"):
        await store.transact(work)
    assert await store.fetch_one(HELD, ("a",)) is None


async def test_several_reads_in_one_go_may_not_write(store: SqliteStore) -> None:
    await store.execute(KEEP, ("a", "1"))

    async def both(t: Queries) -> list[object]:
        return [await t.fetch_one(HELD, ("a",)), await t.fetch_all(HELD, ("b",))]

    async def write(t: Queries) -> None:
        await t.execute(KEEP, ("b", "1"))

    assert await store.look(both) == [{"value": "1"}, []]
    with pytest.raises(StoreProblem):
        await store.look(write)
