from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.index.update_queue import MOST_ATTEMPTS, MOST_PATHS, WHOLE_TREE, JobQueue
from evercontext.storage.migrate import load_migrations
from evercontext.storage.sqlite import SqliteStore


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[JobQueue]:
    migrations = load_migrations("evercontext.index", "migrations")
    store = await SqliteStore.open(tmp_path / "index.db", migrations=migrations, durable=False)
    yield JobQueue(store)
    await store.close()


@pytest.mark.case(129)
async def test_a_path_waits_once_however_often_it_changes(queue: JobQueue) -> None:
    for _ in range(1_000 // 50):
        await queue.add(["a.py"] * 50)
    assert await queue.waiting() == ["a.py"]


@pytest.mark.case(129)
async def test_a_storm_becomes_one_scan_of_the_tree(queue: JobQueue) -> None:
    await queue.add(f"f{i}.py" for i in range(100_000))
    assert len(await queue.waiting()) <= MOST_PATHS
    assert WHOLE_TREE in await queue.waiting()


async def test_two_workers_never_get_the_same_path(queue: JobQueue) -> None:
    await queue.add(["a", "b", "c"])
    first, second = await queue.take(2), await queue.take(2)
    assert sorted(first.paths + second.paths) == ["a", "b", "c"]
    assert not await queue.take()


async def test_a_dead_worker_loses_its_lease(queue: JobQueue) -> None:
    await queue.add(["a"])
    assert (await queue.take(seconds=-1)).paths == ("a",)
    assert (await queue.take()).paths == ("a",)


async def test_a_path_that_changes_under_lease_waits_again(queue: JobQueue) -> None:
    await queue.add(["a"])
    leased = await queue.take()
    await queue.add(["a"])
    await queue.finish(leased)
    assert await queue.waiting() == ["a"]


async def test_a_path_that_always_fails_is_given_up(queue: JobQueue) -> None:
    await queue.add(["a"])
    for _ in range(MOST_ATTEMPTS):
        await queue.give_back(await queue.take())
    assert await queue.waiting() == []
