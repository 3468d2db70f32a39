from __future__ import annotations

from evercontext.domain.memory import RetrievalOptions
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.storage.change_numbers import read_settled_change
from evercontext.storage.postgres import PostgresStore
from evercontext.storage.sqlite import SqliteStore
from tests import postgres

INSERT = (
    "INSERT INTO memories (id, project, memory_type, source_type, content, digest, created_at,"
    " valid_from, change, terms) SELECT ?, project, memory_type, source_type, 'a late heron',"
    " 'late', created_at, valid_from, 0, terms FROM memories LIMIT 1"
)


async def test_a_change_that_commits_late_is_seen_though_later_ones_were_read_before() -> None:
    """Without one lock for all writers numbers do not appear in their order."""
    url = postgres.new_database()
    store, other = await PostgresStore.open(url), await PostgresStore.open(url)
    store._has_memory_search = False
    memories, retrieval = MemoryStore(store), RetrievalOrchestrator(store)
    options = RetrievalOptions(9, project="/p")
    await memories.save_memory("the first heron", project="/p")
    async with other.transaction("") as writing:
        await writing.execute(INSERT, ("late",))
        before = await read_settled_change(store)
        await memories.save_memory("the second heron", project="/p")
        assert len(await retrieval.retrieve("heron", options)) == 2
        assert await read_settled_change(store) == before
    assert len(await retrieval.retrieve("heron", options)) == 3
    assert await read_settled_change(store) > before
    await other.close()
    await store.close()


async def test_in_a_file_the_newest_number_is_settled() -> None:
    store = await SqliteStore.in_memory()
    assert await read_settled_change(store) == 0
    await MemoryStore(store).save_memory("a heron")
    assert await read_settled_change(store) == 1
    await store.close()
