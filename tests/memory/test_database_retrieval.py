from __future__ import annotations

import asyncio

import pytest

from evercontext.domain.memory import RetrievalOptions
from evercontext.memory import database_retrieval, recall
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.storage import memory_candidates
from evercontext.storage.store import Parameters, Row, Store


class CountingStore:
    """A store that counts the rows it returns and the statements it runs."""

    def __init__(self, store: Store) -> None:
        self._store, self.rows, self.statements = store, 0, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @property
    def has_memory_search(self) -> bool:
        """Say so itself: from Python 3.12 on, a protocol sees nothing that is only passed on."""
        return getattr(self._store, "has_memory_search", False)

    async def index_vectors(self, scope: int, encoder: str, dimensions: int) -> bool:
        assert isinstance(self._store, memory_candidates.SearchesMemories)
        return await self._store.index_vectors(scope, encoder, dimensions)

    async def fetch_all(
        self, sql: str, parameters: Parameters = (), *, seconds: float = 30.0
    ) -> list[Row]:
        rows = await self._store.fetch_all(sql, parameters, seconds=seconds)
        self.rows, self.statements = self.rows + len(rows), self.statements + 1
        return rows

    async def fetch_one(
        self, sql: str, parameters: Parameters = (), *, seconds: float = 30.0
    ) -> Row | None:
        return next(iter(await self.fetch_all(sql, parameters, seconds=seconds)), None)


async def test_twelve_users_in_turn_load_their_memories_once(
    database: Store, memories: MemoryStore
) -> None:
    """F5: past eight users every question loaded all memories of its asker again."""
    for number in range(12):
        for text in ("the heron nests", "lunch is at noon", "the eagle left"):
            await memories.save_memory(text, user_id=f"u{number}")
    counting = CountingStore(database)
    retrieval = RetrievalOrchestrator(counting)  # type: ignore[arg-type]

    async def ask_all() -> int:
        counting.rows = 0
        for number in range(12):
            options = RetrievalOptions(1, user_id=f"u{number}")
            [result] = await retrieval.retrieve("heron nest", options)
            assert result.content == "the heron nests"
        return counting.rows

    await ask_all()
    assert await ask_all() <= 12 * 8, "a question reads its statistics and its answers"


async def test_arrays_of_askers_not_heard_of_for_longest_are_given_back(
    memories: MemoryStore, database: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.report.shared:
        pytest.skip("a server with pgvector keeps nothing in the process")
    monkeypatch.setattr(recall, "MOST_MEMORIES", 3)
    retrieval = RetrievalOrchestrator(database)
    for user in ("ann", "ben", "eve"):
        for text in ("a heron", "an eagle"):
            await memories.save_memory(text, user_id=user)
    for user in ("ann", "ben", "eve", "ann"):
        options = RetrievalOptions(2, user_id=user)
        assert len(await retrieval.retrieve("heron eagle", options)) == 2
        assert sum(map(len, retrieval._corpora.values())) <= 3


async def test_a_question_costs_four_statements_however_large_the_scope(url: str) -> None:
    from evercontext.storage.postgres import PostgresStore

    store = await PostgresStore.open(url)
    for number in range(30):
        await MemoryStore(store).save_memory(f"the heron nests at {number}", project="/p")
    counting = CountingStore(store)
    retrieval = RetrievalOrchestrator(counting)  # type: ignore[arg-type]
    await retrieval.retrieve("where does the heron nest?", RetrievalOptions(5, project="/p"))
    assert counting.statements == 4, "statistics, spelling, candidates, answers"
    await store.close()


async def test_a_scope_that_has_become_large_gets_its_vector_index(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evercontext.storage.postgres import PostgresStore

    for module in (database_retrieval, memory_candidates):
        monkeypatch.setattr(module, "EXACT_VECTORS", 2)
    store = await PostgresStore.open(url)
    for number in range(5):
        await MemoryStore(store).save_memory(f"the heron nests at {number}", project="/p")
    retrieval = RetrievalOrchestrator(store)
    options = RetrievalOptions(5, project="/p")
    assert len(await retrieval.retrieve("heron", options)) == 5
    await asyncio.gather(*retrieval._database._indexing)
    rows = await store.fetch_all("SELECT indexname FROM pg_indexes WHERE indexname LIKE '%near%'")
    assert len(rows) == 1
    assert len(await retrieval.retrieve("heron", options)) == 5
    await store.close()


async def test_statistics_of_many_memories_may_be_seconds_old_and_answers_may_not(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evercontext.storage.postgres import PostgresStore

    monkeypatch.setattr(database_retrieval, "_MANY", 1)
    store = await PostgresStore.open(url)
    memories, retrieval = MemoryStore(store), RetrievalOrchestrator(store)
    await memories.save_memory("the heron nests", project="/p")
    options = RetrievalOptions(5, project="/p")
    assert len(await retrieval.retrieve("heron", options)) == 1
    late = await memories.save_memory("a second heron", project="/p")
    assert late.id in [result.id for result in await retrieval.retrieve("heron", options)]
    await memories.forget(late.id, project="/p")
    assert len(await retrieval.retrieve("heron", options)) == 1
    hers = RetrievalOptions(5, "ann", "/p")
    assert len(await retrieval.retrieve("heron", hers)) == 1
    await memories.save_memory("her own heron", user_id="ann", project="/p")
    assert len(await retrieval.retrieve("heron", hers)) == 2
    await store.close()
