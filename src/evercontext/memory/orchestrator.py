"""``RetrievalOrchestrator``: a question in, the memories that bear on it out, each with why."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from evercontext.domain.memory import MemoryType, RetrievalOptions, RetrievedMemory
from evercontext.memory.memory_table import COLUMNS, VISIBLE, Scope, gist_of, seen_by
from evercontext.storage.store import Row, Store
from evercontext.storage.version_cache import VersionCache

if TYPE_CHECKING:
    from evercontext.memory.corpus import Corpus
    from evercontext.memory.ranking import Question, Ranked

LONGEST_QUESTION = 4_000
MOST_TERMS = 64
MOST_SCOPES = 8
"""Askers whose memories are kept ready at once."""
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


class RetrievalOrchestrator:
    """Finds memories. What other processes write is seen at the next question."""

    def __init__(self, store: Store, *, project: str | None = None) -> None:
        self._store = store
        self._project = project
        self._corpora: OrderedDict[Scope, Corpus] = OrderedDict()
        self._loading = asyncio.Lock()
        self._newest = {
            limit: VersionCache(store, partial(self._read_newest, limit))
            for limit in (WORK, PATIENCE, HURRY)
        }

    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None
    ) -> Sequence[RetrievedMemory]:
        """Return the best memories first; nothing of another user or project is among them."""
        wanted = options or RetrievalOptions()
        if not query.strip() or wanted.limit < 1:
            return []
        scope = Scope(wanted.project or self._project or "", wanted.user_id or "")
        limit = self._limit(wanted)
        corpus = await self._corpus(scope, limit)
        if not len(corpus):
            return []
        # Local: yesterday is a day of the asker's, not of Greenwich's.
        now = wanted.now or datetime.now().astimezone()
        question = _analyse(corpus, query, now)
        most = wanted.limit + min(_SPARE + wanted.limit, 50)
        while True:
            ranked = _rank(corpus, question, wanted, now, most)
            results = await self._results(corpus, ranked, wanted, limit)
            if len(results) >= wanted.limit or len(ranked.slots) < most:
                return results
            if _similarities(ranked)[-1] < wanted.min_similarity:
                return results
            # Duplicates took the places of others: look at further candidates.
            most *= _FURTHER

    def _limit(self, options: RetrievalOptions) -> float:
        """Seconds that each statement of a search may take."""
        if not self._store.report.shared:
            return WORK
        return HURRY if options.hurried else PATIENCE

    async def _corpus(self, scope: Scope, limit: float) -> Corpus:
        """Return the arrays of a scope, in step with the table."""
        from evercontext.memory.corpus import NEEDED, Corpus
        from evercontext.retrieval.static_vectors import load_static_vectors

        async with self._loading:
            encoder = load_static_vectors()
            corpus = self._corpora.pop(scope, None) or Corpus(encoder.dimensions if encoder else 0)
            newest = await self._newest[limit].get()
            if newest > corpus.version:
                rows = await self._store.fetch_all(
                    f"SELECT {NEEDED} FROM memories WHERE change > ? AND {VISIBLE} ORDER BY number",  # noqa: S608 - made of fixed words
                    (corpus.version, *seen_by(scope)),
                    seconds=_LOAD_SECONDS,
                )
                if len(rows) > max(2_000, len(corpus) // 4) and len(corpus):
                    # Many at once are cheaper to build than to add.
                    corpus = Corpus(corpus.dimensions)
                    rows = await self._store.fetch_all(
                        f"SELECT {NEEDED} FROM memories WHERE {VISIBLE} ORDER BY number",  # noqa: S608 - made of fixed words
                        seen_by(scope),
                        seconds=_LOAD_SECONDS,
                    )
                await self._encode_again(rows, encoder.name if encoder else None)
                await asyncio.to_thread(corpus.take, rows)
                corpus.version = max(corpus.version, newest)
            self._corpora[scope] = corpus
            while len(self._corpora) > MOST_SCOPES:
                self._corpora.popitem(last=False)
            return corpus

    async def _read_newest(self, limit: float) -> int:
        row = await self._store.fetch_one(
            "SELECT coalesce(max(change), 0) AS change FROM memories", seconds=limit
        )
        return int(row["change"]) if row else 0

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
        self, corpus: Corpus, ranked: Ranked, options: RetrievalOptions, limit: float
    ) -> list[RetrievedMemory]:
        numbers = corpus.numbers.values[ranked.slots].tolist()
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


def _analyse(corpus: Corpus, query: str, now: datetime) -> Question:
    """Take a question apart: words to look for, who is meant, when."""
    from evercontext.memory.date_phrases import find_date_ranges
    from evercontext.memory.question import meant_speakers, wanted_terms, wanted_words
    from evercontext.memory.ranking import Question
    from evercontext.retrieval.spelling import repair
    from evercontext.retrieval.static_vectors import load_static_vectors
    from evercontext.retrieval.tokens import fold, runs

    text = query[:LONGEST_QUESTION]
    names = meant_speakers(text, corpus.speaker_names)
    encoder = load_static_vectors()
    spoken = {word.lower() for name in names for word in runs(fold(name))}
    text = repair(text, corpus.frequencies, encoder, spoken)
    words = wanted_words(text, set(names))[:MOST_TERMS]
    return Question(
        terms=dict(list(wanted_terms(words).items())[:MOST_TERMS]),
        vector=encoder.pool(dict.fromkeys(words, 1.0)) if encoder else None,
        speakers=tuple(sorted(set(names.values()))),
        moments=find_date_ranges(text, now),
        now=now.timestamp(),
    )


def _rank(
    corpus: Corpus, question: Question, options: RetrievalOptions, now: datetime, most: int
) -> Ranked:
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


def _result(row: Row, ranked: Ranked, place: int, similarity: float) -> RetrievedMemory:
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


def _similarities(ranked: Ranked) -> list[float]:
    """How near each is in itself, 0 to 1; never less than what comes after it."""
    near = 0.6 * ranked.coverage.clip(0, 1) + 0.4 * ranked.cosine.clip(0, 1)
    falling = near[::-1].copy()
    for place in range(1, len(falling)):
        falling[place] = max(falling[place], falling[place - 1])
    return [float(value) for value in falling[::-1]]
