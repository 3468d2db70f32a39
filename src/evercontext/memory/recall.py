"""Recall memories for a question, each with a reason (``RetrievalOrchestrator``)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from evercontext.domain.memory import (
    MemoryType,
    RetrievalOptions,
    RetrievedMemories,
    RetrievedMemory,
)
from evercontext.memory.database_retrieval import DatabaseRetrieval
from evercontext.memory.memory_table import COLUMNS, VISIBLE, MemoryScope, gist_of, seen_by
from evercontext.storage.change_numbers import read_settled_change
from evercontext.storage.memory_candidates import memory_search_of
from evercontext.storage.store import Row, Store
from evercontext.storage.version_cache import VersionCache

if TYPE_CHECKING:
    from evercontext.memory.corpus import MemoryCorpus
    from evercontext.memory.ranking import MemoryQuestion, RankedMemories

LONGEST_QUESTION = 4_000
"""Characters of a question that are read."""
MOST_MEMORIES = 200_000
"""Memories that are ready in this process at once, of however many askers; each takes 2 KB."""
_SPARE = 3
"""Extra results looked at, so that duplicates can be left out."""
_FURTHER = 4
"""So many times as many are looked at where those were not enough."""
WORK = 0.2
"""Seconds that one statement of a search may work, for each hundred rows it wants; they look rows
up by number and need a few thousandths."""
PATIENCE, HURRY = 5.0, 1.0
"""The same on a server, which cannot tell work from waiting for a lock; less if a model waits."""
_LOAD_SECONDS = 60.0


Ranking = Callable[[int], "RankedMemories"]
"""Returns so many of the best memories."""


class RetrievalOrchestrator:
    """Finds memories. What other processes write is seen at the next question."""

    def __init__(self, store: Store, *, project: str | None = None) -> None:
        self._store = store
        self._project = project
        self._corpora: OrderedDict[MemoryScope, MemoryCorpus] = OrderedDict()
        self._loading: WeakValueDictionary[MemoryScope, asyncio.Lock] = WeakValueDictionary()
        self._database = DatabaseRetrieval(store)
        self._newest = {
            limit: VersionCache(store, partial(read_settled_change, store, limit))
            for limit in (WORK, PATIENCE, HURRY)
        }

    async def prepare(self) -> None:
        """Load numpy and the word vectors in a thread: they would hold the event loop."""
        await asyncio.to_thread(_load_parts)

    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> RetrievedMemories:
        """Return the best memories first; nothing of another user or project is among them."""
        return RetrievedMemories(await self._retrieve(query, options or RetrievalOptions()))

    async def _retrieve(self, query: str, options: RetrievalOptions) -> list[RetrievedMemory]:
        if not query.strip() or options.limit < 1:
            return []
        query = query[:LONGEST_QUESTION]
        scope = MemoryScope(options.project or self._project or "", options.user_id or "")
        limit = self._limit(options)
        # Local: yesterday is a day of the asker's, not of Greenwich's.
        now = options.now or datetime.now().astimezone()
        if memory_search_of(self._store):
            ranking = await self._database.prepare(query, scope, options, now, limit)
        else:
            ranking = await self._prepare(query, scope, options, now, limit)
        if ranking is None:
            return []
        most = options.limit + min(_SPARE + options.limit, 50)
        while True:
            ranked = ranking(most)
            results = await self._results(ranked, options, limit)
            if len(results) >= options.limit or len(ranked.numbers) < most:
                return results
            if _similarities(ranked)[-1] < options.min_similarity:
                return results
            # Duplicates took the places of others: look at further candidates.
            most *= _FURTHER

    async def _prepare(
        self, query: str, scope: MemoryScope, options: RetrievalOptions, now: datetime, limit: float
    ) -> Ranking | None:
        """Return the ranking of a scope's arrays in this process; nothing of no memories."""
        corpus = await self._corpus(scope, limit)
        if not len(corpus):
            return None
        question = _analyse(corpus, query, now)
        return partial(_rank, corpus, question, options, now)

    def _limit(self, options: RetrievalOptions) -> float:
        """Seconds that each statement of a search may take."""
        if not self._store.report.shared:
            return WORK
        return HURRY if options.hurried else PATIENCE

    async def _corpus(self, scope: MemoryScope, limit: float) -> MemoryCorpus:
        """Return the arrays of a scope, in step with the table."""
        from evercontext.memory.corpus import NEEDED, MemoryCorpus
        from evercontext.retrieval.static_vectors import load_static_vectors

        async with self._loading.setdefault(scope, asyncio.Lock()):
            encoder = load_static_vectors()
            corpus = self._corpora.get(scope) or MemoryCorpus(encoder.dimensions if encoder else 0)
            newest, shared = await self._newest[limit].get(), self._store.report.shared
            # On a server a change may appear below the newest number, as long as it is not settled.
            if newest > corpus.version or shared:
                rows = await self._store.fetch_all(
                    f"SELECT {NEEDED} FROM memories WHERE change > ? AND {VISIBLE} ORDER BY number",  # noqa: S608 - made of fixed words
                    (corpus.version, *seen_by(scope)),
                    seconds=_LOAD_SECONDS,
                )
                if len(rows) > max(2_000, len(corpus) // 4) and len(corpus):
                    # Many at once are cheaper to build than to add.
                    corpus = MemoryCorpus(corpus.dimensions)
                    rows = await self._store.fetch_all(
                        f"SELECT {NEEDED} FROM memories WHERE {VISIBLE} ORDER BY number",  # noqa: S608 - made of fixed words
                        seen_by(scope),
                        seconds=_LOAD_SECONDS,
                    )
                await self._encode_again(rows, encoder.name if encoder else None)
                await asyncio.to_thread(corpus.take, rows)
                corpus.version = newest if shared else max(corpus.version, newest)
            self._keep(scope, corpus)
            return corpus

    def _keep(self, scope: MemoryScope, corpus: MemoryCorpus) -> None:
        """Hold the arrays of a scope ready; those not used for longest make place for it."""
        self._corpora[scope] = corpus
        self._corpora.move_to_end(scope)
        ready = sum(map(len, self._corpora.values()))
        while ready > MOST_MEMORIES and len(self._corpora) > 1:
            _, oldest = self._corpora.popitem(last=False)
            ready -= len(oldest)

    async def _encode_again(self, rows: list[Row], encoder: str | None) -> None:
        """Give rows that were written with other vectors the present ones."""
        from evercontext.memory.encoding import encode_vectors

        stale = [row for row in rows if row["state"] == "active" and row["encoder"] != encoder]
        if encoder is None:
            return
        for at in range(0, len(stale), 500):
            part = stale[at : at + 500]
            numbers = [row["number"] for row in part]
            texts = await self._contents(numbers, "number, content", _LOAD_SECONDS)
            known = {row["number"]: row["content"] for row in texts}
            _, vectors = await asyncio.to_thread(
                encode_vectors, [known.get(row["number"], "") for row in part]
            )
            for row, vector in zip(part, vectors, strict=True):
                row["vector"] = vector

    async def _results(
        self, ranked: RankedMemories, options: RetrievalOptions, limit: float
    ) -> list[RetrievedMemory]:
        numbers = ranked.numbers.tolist()
        rows = {row["number"]: row for row in await self._contents(numbers, COLUMNS, limit)}
        results: list[RetrievedMemory] = []
        near = _similarities(ranked)
        for place in _distinct([rows.get(number) for number in numbers]):
            if len(results) == options.limit or near[place] < options.min_similarity:
                break
            results.append(_result(rows[numbers[place]], ranked, place, near[place]))
        return results

    async def _contents(self, numbers: list[int], columns: str, limit: float) -> list[Row]:
        if not numbers:
            return []
        marks = ", ".join("?" * len(numbers))
        return await self._store.fetch_all(
            f"SELECT {columns} FROM memories WHERE number IN ({marks})",  # noqa: S608 - made of fixed words
            numbers,
            seconds=limit * max(1.0, len(numbers) / 100),
        )


def _analyse(corpus: MemoryCorpus, query: str, now: datetime) -> MemoryQuestion:
    """Take a question apart by the words and the speakers of a corpus."""
    from evercontext.memory.question import read_question

    """Take a question apart: words to look for, who is meant, when."""

    return read_question(query, now, corpus.speaker_names, corpus.frequencies)


def _rank(
    corpus: MemoryCorpus,
    question: MemoryQuestion,
    options: RetrievalOptions,
    now: datetime,
    most: int,
) -> RankedMemories:
    from evercontext.memory.ranking import rank

    usable = corpus.alive.values & (corpus.expires.values > now.timestamp())
    if options.memory_type is not None:
        working = corpus.working.values
        usable &= working if options.memory_type is MemoryType.WORKING else ~working
    return rank(corpus, question, usable, most)


def _distinct(rows: Sequence[Row | None]) -> Iterator[int]:
    """Leave out what says the same as a better result, word for word but for little ones.

    A number, a date, a name or a "not" makes another memory of it, however near the two are.
    """
    seen: set[tuple[str, ...]] = set()
    for place, row in enumerate(rows):
        if row is None or row["state"] != "active":
            continue
        gist = (row["speaker"] or "", *gist_of(row["content"]))
        if gist not in seen:
            seen.add(gist)
            yield place


def _result(row: Row, ranked: RankedMemories, place: int, similarity: float) -> RetrievedMemory:
    from evercontext.memory.ranking import WEIGHTS

    reasons = {
        name: round(float(WEIGHTS[name] * values[place]), 3)
        for name, values in ranked.signals.items()
        if abs(WEIGHTS[name] * values[place]) >= 0.05
    }
    return RetrievedMemory(
        id=row["id"],
        content=row["content"],
        similarity=round(similarity, 4),
        untrusted=bool(row["untrusted"]),
        created_at=row["created_at"],
        speaker=row["speaker"],
        reasons=dict(sorted(reasons.items(), key=lambda item: -abs(item[1]))),
    )


def _similarities(ranked: RankedMemories) -> list[float]:
    """How near each is in itself, 0 to 1; never less than what comes after it."""
    near = 0.6 * ranked.coverage.clip(0, 1) + 0.4 * ranked.cosine.clip(0, 1)
    falling = near[::-1].copy()
    for place in range(1, len(falling)):
        falling[place] = max(falling[place], falling[place - 1])
    return [float(value) for value in falling[::-1]]


def _load_parts() -> None:
    import evercontext.memory.ranking  # noqa: F401 - loaded for the questions that follow
    from evercontext.retrieval.static_vectors import load_static_vectors

    load_static_vectors()
