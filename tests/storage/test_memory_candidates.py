"""What PostgreSQL says of candidates is what the arrays of the process say of them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evercontext.domain.memory import MemoryType, RetrievalOptions, SourceType
from evercontext.memory.corpus import NEEDED, MemoryCorpus
from evercontext.memory.encoding import ASKS
from evercontext.memory.memory_store import MemoryStore
from evercontext.memory.memory_table import Memory, stamp
from evercontext.memory.ranking import word_scores
from evercontext.memory.recall import RetrievalOrchestrator
from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import short_term_key
from evercontext.storage import memory_candidates
from evercontext.storage.memory_candidates import (
    TERM_OFFSET,
    CandidateQuery,
    memory_search_of,
    read_candidates,
    read_frequencies,
    read_statistics,
)
from evercontext.storage.postgres import PostgresStore
from tests import postgres

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ["heron", "eagle", "deploy", "token", "port", "chimney", "lunch", "barn", "記憶", "予算"]


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(postgres.new_database())
    yield opened
    await opened.close()


def conversation(count: int, project: str = "/p") -> list[Memory]:
    rng = random.Random(5)
    return [
        Memory(
            f"m{number}",
            " ".join(rng.choices(WORDS, k=rng.randint(1, 9))) + rng.choice(["", "?"]),
            MemoryType.LONGTERM,
            SourceType.MESSAGE,
            stamp(START + timedelta(hours=number)),
            project=project,
            session_id=f"s{number // 7}",
            speaker=("Ana", "Ben")[number % 2],
        )
        for number in range(count)
    ]


async def test_every_number_is_that_of_the_arrays_in_the_process(store: PostgresStore) -> None:
    """F5: one ranking, whichever side counts the words."""
    await MemoryStore(store).save_many(conversation(150))
    encoder = load_static_vectors()
    assert encoder is not None
    vector = encoder.pool({"heron": 1.0, "記憶": 1.0})
    terms = {short_term_key("heron"): 1.0, short_term_key("port"): 1.0, short_term_key("no"): 0.5}
    statistics = await read_statistics(store, [("/p", "")], encoder.name)
    query = CandidateQuery(terms, vector.tolist(), encoder.name, ["Ana"], stamp())
    candidates = await read_candidates(store, statistics, query)
    corpus = MemoryCorpus(encoder.dimensions)
    corpus.take(await store.fetch_all(f"SELECT {NEEDED} FROM memories ORDER BY number"))
    words = word_scores(corpus, terms)

    def column(name: str) -> np.ndarray:
        return np.frombuffer(candidates.columns[name], ">f8")

    assert statistics.memories == len(corpus) == 150
    assert statistics.average_length == pytest.approx(corpus.average_length)
    assert statistics.speakers == ("Ana", "Ben")
    numbers = np.frombuffer(candidates.numbers, ">i8").tolist()
    assert numbers == corpus.numbers.values.tolist(), "all are candidates: nothing is left out"
    np.testing.assert_allclose(column("own"), words.own, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(column("context"), words.context, rtol=1e-4, atol=1e-6)
    sessions = words.session[corpus.sessions.values]
    np.testing.assert_allclose(column("session"), sessions, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(column("cosine"), corpus.vectors.values @ vector, atol=2e-3)
    np.testing.assert_array_equal(column("length"), corpus.lengths.values)
    np.testing.assert_array_equal(column("opening"), corpus.previous.values < 0)
    np.testing.assert_array_equal(np.isnan(column("cosine_after")), corpus.following.values < 0)
    asks = np.isin(np.arange(150), corpus.postings(ASKS)[0])
    np.testing.assert_array_equal(column("asks"), asks)
    assert candidates.totals["own_sum"] == pytest.approx(float(words.own.sum()), rel=1e-4)
    assert candidates.totals["context_sum"] == pytest.approx(float(words.context.sum()), rel=1e-4)
    assert candidates.totals["most"] == pytest.approx(words.most, rel=1e-5)


async def test_candidates_are_few_and_the_best_is_among_them(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = MemoryStore(store)
    await memories.save_many(conversation(300))
    needle = await memories.save_memory("A kingfisher dives into the harbour", project="/p")
    few = memory_candidates._CANDIDATES.replace("LIMIT 400", "LIMIT 5")
    monkeypatch.setattr(memory_candidates, "_CANDIDATES", few)
    statistics = await read_statistics(store, [("/p", "")], None)
    terms = {short_term_key(word): 1.0 for word in ("kingfisher", "heron")}
    query = CandidateQuery(terms, None, None, [], stamp())
    candidates = await read_candidates(store, statistics, query)
    numbers = np.frombuffer(candidates.numbers, ">i8").tolist()
    assert 5 <= len(numbers) <= 10
    row = await store.fetch_one("SELECT number FROM memories WHERE id = ?", (needle.id,))
    assert row is not None
    assert row["number"] in numbers


@pytest.mark.parametrize("vectors", [0, 10_000_000])
async def test_a_large_scope_has_an_index_of_its_own_and_the_same_answers(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, vectors: int
) -> None:
    encoder = load_static_vectors()
    assert encoder is not None
    await MemoryStore(store).save_many(conversation(120))
    monkeypatch.setattr(memory_candidates, "EXACT_VECTORS", vectors)
    statistics = await read_statistics(store, [("/p", "")], encoder.name)
    assert await store.index_vectors(statistics.scopes[0], encoder.name, encoder.dimensions)
    assert await store.index_vectors(statistics.scopes[0], encoder.name, encoder.dimensions)
    vector = encoder.pool({"chimney": 1.0})
    query = CandidateQuery({}, vector.tolist(), encoder.name, [], stamp())
    candidates = await read_candidates(store, statistics, query)
    cosines = np.frombuffer(candidates.columns["cosine"], ">f8")
    assert len(cosines) == 120
    rows = await store.fetch_all("SELECT vector FROM memories ORDER BY number")
    stored = np.array([np.frombuffer(row["vector"], np.int8) for row in rows], np.float32)
    exact = stored @ vector / np.linalg.norm(stored, axis=1)
    np.testing.assert_allclose(cosines, exact, atol=2e-3)


async def test_the_tables_follow_every_change_of_a_memory(store: PostgresStore) -> None:
    """What is forgotten leaves no word, no name and no length behind."""
    memories = MemoryStore(store)
    one = await memories.save_memory("heron 予算", project="/p", speaker="Zoe", session_id="s")
    other = await memories.save_memory("heron port", project="/p", speaker="Yan", session_id="s")
    await memories.save_memory("heron port", project="/p", session_id="s", importance=0.9)

    async def state() -> tuple[int, list[int], int, tuple[str, ...]]:
        statistics = await read_statistics(store, [("/p", ""), ("/q", "")], None)
        keys = [short_term_key(word) for word in ("heron", "port", "予算")]
        held = await read_frequencies(store, statistics.scopes, keys)
        return statistics.memories, held, statistics.session_terms, statistics.speakers

    assert await state() == (2, [2, 1, 1], 4, ("Yan", "Zoe"))
    row = await store.fetch_one("SELECT max(importance) AS most FROM memory_documents")
    assert row is not None
    assert row["most"] == pytest.approx(0.9)
    assert await memories.forget(one.id, project="/p")
    assert await state() == (1, [1, 1, 0], 2, ("Yan",))
    assert await memories.archive(other.id, project="/p")
    assert await state() == (0, [0, 0, 0], 0, ())
    await store.execute("UPDATE memories SET state = 'active' WHERE id = ?", (other.id,))
    await store.execute("UPDATE memories SET project = '/q'")
    assert await state() == (1, [1, 1, 0], 2, ("Yan",))
    assert (await read_statistics(store, [("/p", "")], None)).memories == 0
    await store.execute("DELETE FROM memories")
    assert await state() == (0, [0, 0, 0], 0, ())


async def test_a_database_from_before_gets_the_tables_with_what_it_holds() -> None:
    url = postgres.new_database()
    first = await PostgresStore.open(url)
    await first.execute("DROP TABLE memory_documents, memory_postings, memory_sessions CASCADE")
    await first.execute("DROP FUNCTION follow_memories CASCADE")
    await MemoryStore(first).save_memory("The heron nests on the chimney", project="/p")
    await first.close()
    second = await PostgresStore.open(url)
    assert memory_search_of(second) is second
    options = RetrievalOptions(3, project="/p")
    [result] = await RetrievalOrchestrator(second).retrieve("heron nest", options)
    assert result.content == "The heron nests on the chimney"
    await second.close()


async def test_a_server_without_pgvector_answers_alike(store: PostgresStore) -> None:
    """The extension is only the server owner's to add; nothing else depends on it."""
    memories, options = MemoryStore(store), RetrievalOptions(10, project="/p", now=START)
    await memories.save_many(conversation(200))
    asked = ["Where is the heron?", "記憶 eagle", "What did Ana deploy?", "toekn port"]
    inside = [await RetrievalOrchestrator(store).retrieve(text, options) for text in asked]
    store._has_memory_search = False
    outside = [await RetrievalOrchestrator(store).retrieve(text, options) for text in asked]
    for ours, theirs in zip(inside, outside, strict=True):
        assert [result.id for result in ours] == [result.id for result in theirs]
        near = [result.similarity for result in ours]
        assert near == pytest.approx([result.similarity for result in theirs], abs=2e-3)


def test_the_term_of_a_question_is_the_one_the_triggers_know() -> None:
    from evercontext.storage.postgres_memory_search import _script

    assert f"term = {ASKS - TERM_OFFSET})".encode() in _script()
