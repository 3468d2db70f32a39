"""Retrieval by a database that chooses the candidates: nothing of anybody's stays in the process.

The database knows words, neighbours and vectors and returns a few hundred candidates as columns of
numbers; the weighing of them is that of ``memory/ranking.py``, as for memories in the process.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evercontext.domain.memory import MemoryType, RetrievalOptions
from evercontext.errors import EverContextError
from evercontext.memory.memory_table import MemoryScope, stamp
from evercontext.storage.memory_candidates import (
    EXACT_VECTORS,
    CandidateQuery,
    MemoryCandidates,
    ScopeStatistics,
    SearchesMemories,
    memory_search_of,
    read_candidates,
    read_frequencies,
    read_scopes,
    read_statistics,
)
from evercontext.storage.store import Store

if TYPE_CHECKING:
    from evercontext.memory.ranking import (
        CandidateFeatures,
        FeatureScales,
        MemoryQuestion,
        RankedMemories,
    )
    from evercontext.retrieval.fusion import Scale

_MANY = 5_000
"""Memories whose statistics are not counted anew for each question."""
_STATISTICS_SECONDS = 30.0
_MOST_STATISTICS = 1_000
_BATCH = 500
_LOAD_SECONDS = 60.0


class _UnknownFrequencies(Exception):
    """Frequencies that have to be read before a question can be taken apart."""

    def __init__(self, terms: Sequence[str]) -> None:
        super().__init__()
        self.terms = terms


class DatabaseRetrieval:
    """Prepares questions for a store with ``has_memory_search``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._indexed: set[int] = set()
        self._indexing: set[asyncio.Task[None]] = set()
        self._statistics: OrderedDict[MemoryScope, tuple[float, ScopeStatistics]] = OrderedDict()

    async def prepare(
        self, query: str, scope: MemoryScope, options: RetrievalOptions, now: datetime, limit: float
    ) -> Callable[[int], RankedMemories] | None:
        """Return the ranking of a scope's candidates; nothing where there is no memory."""
        from evercontext.retrieval.static_vectors import load_static_vectors

        encoder = load_static_vectors()
        name = encoder.name if encoder else None
        statistics = await self._count(scope, name, limit)
        if not statistics.memories:
            return None
        if statistics.stale and name:
            await self._encode_again(statistics.scopes, name)
        if encoder:
            self._index_large(statistics, encoder.name, encoder.dimensions)
        speakers = list(dict.fromkeys(speaker.casefold() for speaker in statistics.speakers))
        question = await self._read(query, now, speakers, statistics, limit)
        candidates = await read_candidates(
            self._store,
            statistics,
            _query(question, statistics, speakers, options, now, name),
            limit,
        )
        return _rank(question, statistics, candidates)

    async def _count(
        self, scope: MemoryScope, encoder: str | None, limit: float
    ) -> ScopeStatistics:
        """Return a scope's statistics; those of many memories may be some seconds old."""
        owners = {(scope.project, ""), (scope.project, scope.user)}
        owners |= {("", scope.user)} if scope.user else set()
        known = self._statistics.get(scope)
        young = known is not None and time.monotonic() - known[0] < _STATISTICS_SECONDS
        # A user's first memory is found at once, however many the project has.
        if young and known and await self._scopes(owners, limit) == known[1].scopes:
            return known[1]
        seconds = max(limit, _LOAD_SECONDS) if known is None else limit
        statistics = await read_statistics(self._store, sorted(owners), encoder, seconds)
        if statistics.memories >= _MANY and not statistics.stale:
            self._statistics[scope] = (time.monotonic(), statistics)
            while len(self._statistics) > _MOST_STATISTICS:
                self._statistics.popitem(last=False)
        return statistics

    async def _scopes(self, owners: Collection[tuple[str, str]], limit: float) -> tuple[int, ...]:
        return await read_scopes(self._store, sorted(owners), limit)

    async def _read(
        self,
        query: str,
        now: datetime,
        speakers: Sequence[str],
        statistics: ScopeStatistics,
        limit: float,
    ) -> MemoryQuestion:
        """Take a question apart; what it needs to know of the words is read as it is needed."""
        from evercontext.memory.question import read_question
        from evercontext.retrieval.term_keys import short_term_key

        known: dict[str, int] = {}

        def frequency(terms: Sequence[str]) -> list[int]:
            if unknown := [term for term in terms if term not in known]:
                raise _UnknownFrequencies(unknown)
            return [known[term] for term in terms]

        codes = {name: code for code, name in enumerate(speakers)}
        while True:
            try:
                return read_question(query, now, codes, frequency)
            except _UnknownFrequencies as unknown:
                keys = [short_term_key(term) for term in unknown.terms]
                counts = await read_frequencies(self._store, statistics.scopes, keys, limit)
                known.update(zip(unknown.terms, counts, strict=True))

    def _index_large(self, statistics: ScopeStatistics, encoder: str, dimensions: int) -> None:
        """See to the vector index of scopes that have become large, without waiting for it.

        Until it is there the server sorts all vectors of the scope, which is slow and right.
        """
        search = memory_search_of(self._store)
        for scope, size in zip(statistics.scopes, statistics.sizes, strict=True):
            if size <= EXACT_VECTORS or scope in self._indexed or search is None:
                continue
            self._indexed.add(scope)
            task = asyncio.create_task(_index(search, scope, encoder, dimensions))
            self._indexing.add(task)
            task.add_done_callback(self._indexing.discard)

    async def _encode_again(self, scopes: Sequence[int], encoder: str) -> None:
        """Give memories that were written with other vectors the present ones, for good."""
        from evercontext.memory.encoding import encode_vectors

        while True:
            rows = await self._store.fetch_all(
                "SELECT m.number, m.content FROM memory_documents AS d JOIN memories AS m"
                " USING (number) WHERE d.scope = ANY (?) AND d.encoder IS DISTINCT FROM ?"
                " ORDER BY m.number LIMIT ?",
                (list(scopes), encoder, _BATCH),
                seconds=_LOAD_SECONDS,
            )
            if not rows:
                return
            _, vectors = await asyncio.to_thread(encode_vectors, [row["content"] for row in rows])
            await self._store.execute_many(
                "UPDATE memories SET encoder = ?, vector = ? WHERE number = ?",
                [(encoder, v, row["number"]) for row, v in zip(rows, vectors, strict=True)],
            )


async def _index(search: SearchesMemories, scope: int, encoder: str, dimensions: int) -> None:
    # Only speed depends on it: a role that may not build one, or a server that goes, is no failure.
    with suppress(EverContextError):
        await search.index_vectors(scope, encoder, dimensions)


def _query(
    question: MemoryQuestion,
    statistics: ScopeStatistics,
    speakers: Sequence[str],
    options: RetrievalOptions,
    now: datetime,
    encoder: str | None,
) -> CandidateQuery:
    named = {speakers[code] for code in question.speakers}
    vector = question.vector
    kind = options.memory_type
    return CandidateQuery(
        terms=question.terms,
        vector=None if vector is None or not vector.any() else vector.tolist(),
        encoder=encoder,
        speakers=[name for name in statistics.speakers if name.casefold() in named],
        now=stamp(now),
        working=None if kind is None else kind is MemoryType.WORKING,
        spans=[(stamp(span.start), stamp(span.end)) for span in question.moments.spans],
        months=[int(month) for month in question.moments.months],
    )


def _rank(
    question: MemoryQuestion, statistics: ScopeStatistics, candidates: MemoryCandidates
) -> Callable[[int], RankedMemories]:
    """Weigh the candidates once; return what gives the best of them."""
    import numpy as np

    from evercontext.memory.ranking import rank_features

    features = _features(candidates)
    scales = _scales(features, statistics, candidates, meaning=question.vector is not None)
    numbers = np.frombuffer(candidates.numbers, ">i8").astype(np.int64)
    ranked = rank_features(features, scales, question, numbers, candidates.totals["most"])
    return ranked.best


def _features(candidates: MemoryCandidates) -> CandidateFeatures:
    import numpy as np

    from evercontext.memory.corpus import local_month, seconds_of
    from evercontext.memory.ranking import CandidateFeatures

    columns: dict[str, Any] = {
        name: np.frombuffer(packed, ">f8").astype(np.float32)
        for name, packed in candidates.columns.items()
    }
    columns["after"] = np.nan_to_num(columns["after"])
    created = [seconds_of(moment, 0.0) for moment in candidates.created_at]
    return CandidateFeatures(
        **columns,
        created=np.array(created, np.float64),
        months=np.array([local_month(moment) for moment in created], np.int8),
    )


def _scales(
    features: CandidateFeatures,
    statistics: ScopeStatistics,
    candidates: MemoryCandidates,
    *,
    meaning: bool,
) -> FeatureScales:
    import numpy as np

    from evercontext.memory.ranking import FeatureScales

    totals, size = candidates.totals, statistics.memories
    cosine = _scale(features.cosine, size, totals["meaning_mean"], totals["meaning_spread"])
    sessions = features.session[~np.isnan(features.session)]
    return FeatureScales(
        own=_scale(features.own, size, *_moments(totals, "own", size)),
        context=_scale(features.context, size, *_moments(totals, "context", size)),
        session=_scale(
            sessions,
            statistics.sessions,
            *_moments(totals, "session", statistics.sessions),
        ),
        meaning=cosine if meaning else None,
        near_meaning=cosine if meaning else None,
    )


def _moments(totals: Any, name: str, size: int) -> tuple[float, float]:
    """Return the mean and the spread of ``size`` numbers of which most are zero."""
    mean = float(totals[f"{name}_sum"]) / max(1, size)
    variance = float(totals[f"{name}_squares"]) / max(1, size) - mean * mean
    return mean, max(0.0, variance) ** 0.5


def _scale(values: Any, size: int, mean: float, spread: float) -> Scale:
    from evercontext.memory.ranking import FEW, LEAST_SPREAD
    from evercontext.retrieval.fusion import Scale

    largest = float(abs(values).max()) if len(values) else 0.0
    spread = max(spread, LEAST_SPREAD * largest) if size < FEW else spread
    return Scale(mean, spread if spread > 1e-9 else 0.0)
