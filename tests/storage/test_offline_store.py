from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from psycopg.errors import ConnectionTimeout

from evercontext.errors import StoreGone
from evercontext.storage.offline_store import OfflineStore
from evercontext.storage.opener import open_or_wait
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.store import MayBeOffline, OpenReport
from tests import postgres

NOBODY = "postgresql://someone:hunter2@127.0.0.1:9/none"
pytestmark = pytest.mark.case(122)


async def test_every_question_is_told_that_the_server_is_away(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db", NOBODY)
    assert isinstance(store, MayBeOffline)
    assert store.problem is not None
    assert store.report.location == "postgresql://127.0.0.1:9/none"
    with pytest.raises(StoreGone):
        await store.fetch_one("SELECT 1")
    with pytest.raises(StoreGone):
        await store.execute("DELETE FROM kept")
    with pytest.raises(StoreGone):
        async with store.transaction():
            raise AssertionError("there is no transaction")
    await store.close()
    with pytest.raises(StoreGone):
        await store.fetch_one("SELECT 1")
    assert list(tmp_path.iterdir()) == []


async def test_a_file_is_never_away(tmp_path: Path) -> None:
    store = await open_or_wait(tmp_path / "memory.db")
    assert not isinstance(store, MayBeOffline)
    await store.close()


async def test_a_server_that_comes_back_is_used_and_told_of(tmp_path: Path) -> None:
    url = postgres.new_database()
    with postgres.away():
        store = await open_or_wait(tmp_path / "memory.db", url)
        assert isinstance(store, OfflineStore)
        told: asyncio.Queue[bool] = asyncio.Queue()
        store.on_change(told.put)
        with pytest.raises(StoreGone):
            await store.execute("DELETE FROM kept")
        assert store.report.version == 0
    # Nobody asks anything: the background finds out by itself.
    while not await told.get():
        pass
    assert store.problem is None
    assert store.report.version > 0
    assert await store.fetch_one("SELECT 1 AS one") == {"one": 1}
    with postgres.away():
        with pytest.raises(StoreGone):
            await store.fetch_one("SELECT 1")
        assert await told.get() is False
    # The first who asks again is answered.
    assert await store.fetch_one("SELECT 2 AS two") == {"two": 2}
    assert await told.get() is True
    await store.close()


class Slow:
    """A way to a server that swallows everything: each try costs, and how many there were."""

    def __init__(self) -> None:
        self.tries = 0

    async def __call__(self, attempts: int) -> PostgresStore:
        self.tries += 1
        raise StoreGone("nothing came back") from ConnectionTimeout()


async def test_nobody_waits_for_a_server_that_is_costly_to_ask() -> None:
    way = Slow()
    store = OfflineStore(way, OpenReport("nowhere", 0), pauses=(3600.0,))
    await store.begin()
    for _ in range(5):
        with pytest.raises(StoreGone, match="nothing came back"):
            await store.fetch_all("SELECT 1")
    assert way.tries == 1
    await store.close()
