from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pytest

from evercontext.errors import StoreBusy, StoreGone, StoreProblem
from evercontext.storage.postgres import PostgresStore, place_of
from evercontext.storage.store import DATABASE
from tests import postgres
from tests.storage.contract import COUNT, HELD, KEEP, StoreContract


@pytest.fixture(scope="module")
def shared() -> str:
    return postgres.new_database()


@pytest.fixture
def url() -> str:
    return postgres.new_database()


class TestPostgres(StoreContract):
    @pytest.fixture
    async def store(self, shared: str) -> AsyncIterator[PostgresStore]:
        store = await PostgresStore.open(shared)
        await store.execute("DELETE FROM kept")
        await store.execute("DELETE FROM messages")
        await store.execute("DELETE FROM sessions")
        yield store
        await store.close()


async def test_both_databases_have_the_same_columns(shared: str) -> None:
    from evercontext.storage.sqlite import SqliteStore

    here, there = await SqliteStore.in_memory(), await PostgresStore.open(shared)
    tables = await here.fetch_all("SELECT name FROM sqlite_master WHERE type = 'table'")
    for table in (row["name"] for row in tables):
        if table.startswith(("sqlite_", "message_words", "schema_migrations")):
            continue
        ours = await here.fetch_all("SELECT name FROM pragma_table_info(?)", (table,))
        theirs = await there.fetch_all(
            "SELECT column_name FROM information_schema.columns WHERE table_name = ?", (table,)
        )
        assert {row["column_name"] for row in theirs} == {row["name"] for row in ours}, table
    await here.close()
    await there.close()


WRITER = """
import asyncio, sys
from evercontext.storage.postgres import PostgresStore

async def main():
    store = await PostgresStore.open(sys.argv[1])
    for n in range(50):
        await store.execute(
            "INSERT INTO memories (id, memory_type, source_type, content, digest, created_at,"
            " valid_from, change) VALUES (?, 'longterm', 'thought', 'x', ?, '', '',"
            " (SELECT coalesce(max(change), 0) + 1 FROM memories))",
            (f"{sys.argv[2]}-{n}", f"{sys.argv[2]}-{n}"),
        )
    await store.close()

asyncio.run(main())
"""


@pytest.mark.case(120)
async def test_four_processes_write_and_every_change_has_its_own_number(url: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, url, str(n)]) for n in range(4)]
    assert [await asyncio.to_thread(writer.wait) for writer in writers] == [0] * 4
    store = await PostgresStore.open(url)
    numbers = await store.fetch_one(
        "SELECT count(*) AS n, count(DISTINCT change) AS changes FROM memories"
    )
    assert numbers == {"n": 200, "changes": 200}
    await store.close()


async def test_a_writer_that_waits_too_long_is_told(url: str) -> None:
    first = await PostgresStore.open(url)
    second = await PostgresStore.open(url, busy_seconds=0.2)
    async with first.transaction() as inside:
        await inside.execute(KEEP, ("a", "1"))
        with pytest.raises(StoreBusy):
            await second.execute(KEEP, ("b", "2"))
        assert await second.fetch_one(COUNT) == {"n": 0}
    await second.execute(KEEP, ("b", "2"))
    assert await second.fetch_one(COUNT) == {"n": 2}
    await first.close()
    await second.close()


async def test_writers_of_different_locks_do_not_wait_for_each_other(url: str) -> None:
    """F5: all writers of a database took one lock."""
    first = await PostgresStore.open(url)
    second = await PostgresStore.open(url, busy_seconds=0.2)
    async with first.transaction("session a") as inside:
        await inside.execute(KEEP, ("a", "1"))
        await second.execute(KEEP, ("b", "2"))
        async with second.transaction("session b") as beside:
            await beside.execute(KEEP, ("c", "3"))
        for lock in ("session a", DATABASE):
            with pytest.raises(StoreBusy):
                async with second.transaction(lock):
                    pass
        assert await second.fetch_one(COUNT) == {"n": 2}
    async with second.transaction("session a"):
        assert await first.fetch_one(COUNT) == {"n": 3}
    await first.close()
    await second.close()


async def test_tasks_of_one_process_write_beside_each_other(url: str) -> None:
    store = await PostgresStore.open(url, busy_seconds=0.5)
    async with store.transaction("session a") as inside:
        await inside.execute(KEEP, ("a", "1"))
        await asyncio.create_task(store.execute(KEEP, ("b", "2")))
        with pytest.raises(StoreProblem, match="use it"):
            await store.execute(KEEP, ("c", "3"))
    assert await store.fetch_one(COUNT) == {"n": 2}
    await store.close()


@pytest.mark.case(122)
async def test_connections_cut_by_the_server_are_made_again(url: str) -> None:
    store = await PostgresStore.open(url)
    await store.execute(KEEP, ("a", "1"))
    assert await store.fetch_one(COUNT) == {"n": 1}
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
        " 'evercontext'"
    )
    assert len(postgres.run(cut)) >= 2
    assert await store.fetch_one(HELD, ("a",)) == {"value": "1"}
    await store.execute(KEEP, ("b", "2"))
    assert await store.fetch_one(COUNT) == {"n": 2}
    await store.close()


@pytest.mark.case(122)
async def test_a_transaction_that_lost_its_server_stored_nothing_and_says_so(url: str) -> None:
    store = await PostgresStore.open(url)
    with pytest.raises(StoreGone):
        async with store.transaction() as inside:
            await inside.execute(KEEP, ("a", "1"))
            postgres.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
                " 'evercontext'"
            )
            await inside.execute(KEEP, ("b", "2"))
    assert await store.fetch_one(COUNT) == {"n": 0}
    await store.execute(KEEP, ("c", "3"))
    await store.close()


@pytest.mark.case(122)
async def test_a_server_that_is_not_there_is_tried_three_times_then_named() -> None:
    began = time.monotonic()
    with pytest.raises(StoreGone) as told:
        await PostgresStore.open("postgresql://someone:hunter2@127.0.0.1:9/none")
    assert time.monotonic() - began > 0.3
    assert "EC_DATABASE_URL" in str(told.value.fix)
    assert "hunter2" not in f"{told.value} {told.value.fix}"


async def test_a_cancelled_read_hurts_nobody(url: str) -> None:
    store = await PostgresStore.open(url)
    reading = asyncio.create_task(store.fetch_all("SELECT pg_sleep(30)"))
    await asyncio.sleep(0.2)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await store.fetch_one(COUNT) == {"n": 0}
    await store.close()


def test_the_password_is_not_shown() -> None:
    assert place_of("postgresql://me:secret@db.example:5433/team?x=1") == (
        "postgresql://db.example:5433/team"
    )
