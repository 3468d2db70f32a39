from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from evercontext.errors import StoreProblem, StoreTooNew
from evercontext.storage.migrate import Migration, home_migrations, postgres_migrations
from evercontext.storage.postgres import PostgresStore
from tests import postgres


@pytest.fixture
def url() -> str:
    return postgres.new_database()


def test_both_databases_have_the_same_migrations() -> None:
    there = [(m.version, m.name) for m in postgres_migrations()]
    assert there == [(m.version, m.name) for m in home_migrations()]


@pytest.mark.case(123)
async def test_a_newer_schema_is_refused_and_left_alone(url: str) -> None:
    store = await PostgresStore.open(url)
    await store.execute("INSERT INTO schema_migrations (version, name) VALUES (999, 'later')")
    await store.close()
    with pytest.raises(StoreTooNew, match="999"):
        await PostgresStore.open(url)


@pytest.mark.case(123)
async def test_a_failing_migration_leaves_nothing_of_itself(url: str) -> None:
    good = Migration(1, "good", ("CREATE TABLE a (x TEXT)",))
    bad = Migration(2, "bad", ("CREATE TABLE b (x TEXT)", "CREATE TABLE a (x TEXT)"))
    with pytest.raises(StoreProblem, match="0002_bad failed and was rolled back"):
        await PostgresStore.open(url, migrations=[good, bad])
    store = await PostgresStore.open(url, migrations=[good])
    assert store.report.version == 1
    there = await store.fetch_one("SELECT to_regclass('b') IS NULL AS gone")
    assert there == {"gone": True}
    await store.close()


@pytest.mark.case(123)
async def test_a_migration_killed_half_way_never_happened(url: str) -> None:
    code = (
        "import asyncio, sys\n"
        "from evercontext.storage.migrate import Migration\n"
        "from evercontext.storage.postgres import PostgresStore\n"
        "steps = [Migration(1, 'slow', ('CREATE TABLE a (x TEXT)', 'SELECT pg_sleep(60)'))]\n"
        "asyncio.run(PostgresStore.open(sys.argv[1], migrations=steps))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, url])
    asleep = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()"  # noqa: E501
    while not (pids := postgres.run(asleep)):
        await asyncio.sleep(0.05)
    child.kill()
    child.wait()
    postgres.run(f"SELECT pg_terminate_backend({pids[0][0]})")
    store = await PostgresStore.open(url)
    assert store.report.version == len(postgres_migrations())
    assert await store.fetch_one("SELECT to_regclass('a') IS NULL AS gone") == {"gone": True}
    await store.close()


async def test_two_processes_migrate_at_once(url: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(url) for _ in range(4)))
    assert {store.report.version for store in stores} == {len(postgres_migrations())}
    for store in stores:
        await store.close()
