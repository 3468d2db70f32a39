from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door
from evercontext.errors import StoreGone
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import VISIBLE, MemoryScope, is_visible, seen_by
from evercontext.memory.outbox import Queue
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.memory.tools import memory_tools
from evercontext.storage.opener import open_store
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Store
from tests import postgres
from tests.memory.conftest import masked

pytestmark = pytest.mark.case(122)


@pytest.fixture
async def store(url: str, tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "memory.db", url)
    yield store
    await store.close()


@pytest.fixture
def memories(store: Store) -> MemoryStore:
    return MemoryStore(store, masked)


def outbox(store: Store) -> Path:
    assert store.report.outbox is not None
    return store.report.outbox


async def told(memories: MemoryStore, user: str | None = None) -> list[tuple[str, int]]:
    found = await memories.list(project="/p", user_id=user)
    return [(one.content, one.seen) for one in reversed(found)]


async def test_what_is_saved_while_the_server_is_away_is_stored_when_it_is_back(
    store: Store, memories: MemoryStore
) -> None:
    first = await memories.save_memory("The port was 1", project="/p")
    with postgres.away():
        kept = await memories.save_memory(
            "The port is 2, the key hunter2", project="/p", supersedes=first.id
        )
        again = await memories.save_memory("ポートは2番です", project="/p")
        assert (kept.queued, again.queued) == (True, True)
        assert kept.to_json()["queued"] is True
        assert b"hunter2" not in outbox(store).read_bytes()
        with pytest.raises(StoreGone):
            await memories.list(project="/p")
    last = await memories.save_memory("Last", project="/p")
    assert not last.queued
    assert "queued" not in last.to_json()
    expected = [("The port is 2, the key [secret]", 1), ("ポートは2番です", 1), ("Last", 1)]
    assert await told(memories) == expected
    [old] = await memories.list(project="/p", state="superseded")
    assert (old.id, old.superseded_by) == (first.id, kept.id)
    assert await Queue(outbox(store)).count() == 0


async def test_a_crash_between_both_commits_stores_nothing_twice(
    store: Store, memories: MemoryStore, tmp_path: Path
) -> None:
    await memories.save_memory("Known words", project="/p")
    with postgres.away():
        await memories.save_memory("Known words", project="/p")
        gone = await memories.save_memory("New words", project="/p")
    # The file as a process leaves it that ends after the server's commit and before its own.
    shutil.copy(outbox(store), tmp_path / "before")
    assert await memories.deliver() == 2
    assert await memories.forget(gone.id, project="/p")
    shutil.copy(tmp_path / "before", outbox(store))
    await memories.deliver()
    assert await told(memories) == [("Known words", 2)]
    assert await Queue(outbox(store)).count() == 0


async def test_what_waits_can_be_forgotten_by_who_may_see_it(
    store: Store, memories: MemoryStore
) -> None:
    with postgres.away():
        kept = await memories.save_memory("Ann's own", project="/p", user_id="ann")
        other = await memories.save_memory("Bob's own", project="/p", user_id="bob")
        assert await memories.whole_id(kept.id, project="/p", user_id="ann") == kept.id
        with pytest.raises(StoreGone):
            await memories.forget(kept.id, project="/p", user_id="bob")
        assert await memories.forget(kept.id, project="/p", user_id="ann")
        assert b"Ann's own" not in outbox(store).read_bytes()
        assert await Queue(outbox(store)).holds(other.id, MemoryScope("/p", "bob"))
    assert await memories.deliver() == 1
    assert await told(memories, "ann") == []
    assert await told(memories, "bob") == [("Bob's own", 1)]


async def test_what_may_be_on_the_server_is_not_called_forgotten(
    store: Store, memories: MemoryStore
) -> None:
    one = await memories.save_memory("Stored", project="/p")
    with postgres.away():
        with pytest.raises(StoreGone):
            await memories.take_in([one])
        assert await memories.put_off([one])
        with pytest.raises(StoreGone):
            await memories.forget(one.id, project="/p")
    assert await memories.forget(one.id, project="/p")
    assert await told(memories) == []
    await memories.deliver()
    assert await told(memories) == []


async def test_two_that_deliver_at_once_store_each_once_in_order(
    url: str, store: Store, memories: MemoryStore, tmp_path: Path
) -> None:
    words = [f"Fact number {n}" for n in range(5)]
    with postgres.away():
        for word in words:
            assert (await memories.save_memory(word, project="/p")).queued
    second = await open_store(tmp_path / "memory.db", url)
    await asyncio.gather(memories.deliver(), MemoryStore(second).deliver())
    await second.close()
    assert await told(memories) == [(word, 1) for word in words]


async def test_one_rule_says_who_sees_what_waits_and_what_is_stored() -> None:
    store, names = await SqliteStore.in_memory(), ("", "a", "b")
    rule = f"SELECT 1 AS yes FROM (SELECT ? AS project, ? AS user_id) AS one WHERE {VISIBLE}"
    for project, user, there, who in itertools.product(names, repeat=4):
        scope = MemoryScope(there, who)
        row = await store.fetch_one(rule, (project, user, *seen_by(scope)))
        assert is_visible(project, user, scope) is (row is not None)
    await store.close()


async def test_the_tool_says_that_it_is_queued(store: Store, memories: MemoryStore) -> None:
    caller = Caller("t", Door.MCP, principal=Principal(project="/p"))

    async def project() -> str:
        return "/p"

    remember, recall, _ = memory_tools(memories, RetrievalOrchestrator(store), project)
    with postgres.away():
        answer = await remember.run({"content": "The gate opens at nine"}, caller)
        assert answer.text.startswith("queued: PostgreSQL is away; not yet stored")
        assert answer.data["queued"] is True
        with pytest.raises(StoreGone):
            await recall.run({"query": "gate"}, caller)
    assert await memories.deliver() == 1
    found = await recall.run({"query": "When does the gate open?"}, caller)
    assert [one["id"] for one in found.data["memories"]] == [answer.data["id"]]


async def test_a_writer_that_another_came_before_tries_again(url: str, tmp_path: Path) -> None:
    name = urlsplit(url).path[1:]
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    first, second = [await open_store(tmp_path / "memory.db", url) for _ in range(2)]
    await MemoryStore(first).save_memory("Said by both", project="/p")
    async with first.transaction() as writing:
        await writing.execute("UPDATE memories SET seen = seen + 1")
        save = asyncio.create_task(MemoryStore(second).save_memory("Said by both", project="/p"))
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not postgres.run(waiting):
            await asyncio.sleep(0.02)
    assert not (await save).queued
    assert await told(MemoryStore(first)) == [("Said by both", 3)]
    await first.close()
    await second.close()
