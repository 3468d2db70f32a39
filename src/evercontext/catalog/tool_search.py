"""Rank tools for a request by words, meaning and Japanese-English terms.

A request for a tool is short, or it is a whole task of several steps. So every clause of it is
also asked for itself, and a server whose tools are about the matter speaks for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from evercontext.catalog.query_cleaning import essence
from evercontext.catalog.query_words import as_written
from evercontext.catalog.synonyms import english_terms, for_meaning, language_of
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.domain.japanese import has_kana
from evercontext.retrieval.bm25f import Field, FieldIndex
from evercontext.retrieval.fusion import standardise
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.spelling import repair
from evercontext.retrieval.static_vectors import StaticVectors, load_static_vectors
from evercontext.retrieval.terms import (
    bigrams,
    content_words,
    count_terms,
    fold,
    has_cjk,
    query_terms,
    runs,
)
from evercontext.retrieval.vectors import normalise

MOST_CLAUSES = 12
LONGEST_QUESTION = 4_000
"""Characters of a question that are read; a pasted document is no question."""
_FIELDS = {
    "name": Field(3.0, 0.3),
    "server": Field(1.5, 0.3),
    "description": Field(1.0, 0.75),
    "parameters": Field(0.5, 0.75),
}
_SATURATION = 1.2
_WORDS, _SERVER, _CLAUSES, _CONTEXT = 0.4, 0.4, 0.4, 0.25
_SAME_LANGUAGE, _SAME_PAIR = 0.5, 0.6
_USUAL_SPREAD = 0.06
"""How much the tools and servers of a large catalog differ in what they mean, at the least."""
_PARAMETERS_READ = 300
_JAPANESE = "ja:"
"""Marks a pair of characters of a Japanese text."""
_HIRAGANA = re.compile(r"[\u3041-\u309f]+")
_CUT = re.compile(r"(?<=[.!?;。！？])\s*|,\s+|、|\n|\band\b|\bthen\b")


class Strategy(StrEnum):
    """How tools are looked for."""

    HYBRID = "hybrid"
    BM25 = "bm25"
    NULL = "null"
    """Not at all: every tool is listed."""


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool that may do it, and what spoke for it."""

    entry: CatalogEntry
    relevance: float
    """Between 0 and 1."""
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class _Scores:
    total: Floats
    words: Floats
    meaning: Floats
    terms: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    """What was asked, as it was read."""


class ToolSearch:
    """A searchable list of entries. Building reads every entry once; asking is quick."""

    def __init__(
        self,
        entries: Sequence[CatalogEntry],
        strategy: Strategy = Strategy.HYBRID,
        vectors: StaticVectors | None = None,
    ) -> None:
        self.entries = tuple(entries)
        self.strategy = strategy
        self._index = FieldIndex([_counts(entry) for entry in self.entries], _FIELDS, _SATURATION)
        self._languages = np.array([language_of(entry.description) for entry in self.entries])
        uses_meaning = strategy is Strategy.HYBRID and bool(self.entries)
        self._vectors = (vectors or load_static_vectors()) if uses_meaning else None
        if self._vectors is not None:
            self._meanings = _meanings(self.entries, self._vectors)
            self._servers, self._server_of = _server_meanings(self.entries, self._meanings)

    def search(
        self,
        queries: Sequence[str],
        limit: int = 20,
        *,
        context: str | None = None,
        allow: Callable[[CatalogEntry], bool] | None = None,
    ) -> list[ToolMatch]:
        """Return the best tools, best first; a tool good for any of the queries is good."""
        alive = np.array([allow is None or allow(entry) for entry in self.entries], np.bool_)
        if not alive.any():
            return []
        if self.strategy is Strategy.NULL:
            allowed = [entry for entry, ok in zip(self.entries, alive, strict=True) if ok]
            return [ToolMatch(entry, 1.0) for entry in allowed[:limit]]
        scores = [self._ask(text, alive) for text in queries if text.strip()]
        if not scores:
            return []
        best = scores[0] if len(scores) == 1 else _best_of(scores)
        total = best.total + self._same_language(queries)
        if context and context.strip():
            total = total + np.float32(_CONTEXT) * self._ask(context, alive).total
        return self._ranked(total, best, alive, limit)

    def _same_language(self, queries: Sequence[str]) -> Floats:
        """A little for the tools that speak as the question does: of two alike they come first."""
        spoken = [language_of(text) for text in queries]
        return np.float32(_SAME_LANGUAGE) * np.isin(self._languages, spoken)

    def _ask(self, text: str, alive: NDArray[np.bool_]) -> _Scores:
        text = essence(fold(text[:LONGEST_QUESTION]))
        text = repair(text, self._index.frequencies, self._vectors)
        scores = self._score(text, alive)
        parts = [part for part in _CUT.split(text) if part and len(content_words(part)) > 1]
        if len(parts) < 2:
            return scores
        each = np.stack([self._score(part, alive).total for part in parts[:MOST_CLAUSES]])
        # A soft maximum: one clause that fits well is enough, two are better.
        clauses = np.log(np.exp(each).mean(axis=0))
        total = scores.total + np.float32(_CLAUSES) * clauses
        return replace(scores, total=total)

    def _score(self, text: str, alive: NDArray[np.bool_]) -> _Scores:
        terms = question_terms(text)
        words = self._index.scores(terms)
        if self._vectors is None:
            return _Scores(_over(alive, words), words, np.zeros_like(words), terms, text)
        question = self._vectors.encode_questions([for_meaning(text)])[0]
        meaning: Floats = self._meanings @ question
        server = _standard_meaning(self._servers @ question)[self._server_of]
        total = (
            _over(alive, meaning, _standard_meaning)
            + np.float32(_WORDS) * _over(alive, words)
            + np.float32(_SERVER) * server
        )
        return _Scores(total, words, meaning, terms, text)

    def _ranked(
        self, total: Floats, best: _Scores, alive: NDArray[np.bool_], limit: int
    ) -> list[ToolMatch]:
        says = alive & ((best.words > 0) | (best.meaning > 0))
        order = [i for i in np.argsort(-total, kind="stable").tolist() if says[i]][:limit]
        if not order:
            return []
        low, high = float(total[alive].min()), float(total[order[0]])
        strength = min(1.0, max(float(best.words[order[0]]), float(best.meaning[order[0]])))
        spread = high - low
        matches = []
        for i, why in zip(order, self._reasons(order, best), strict=True):
            share = (float(total[i]) - low) / spread if spread > 1e-9 else 1.0
            matches.append(ToolMatch(self.entries[i], round(strength * share, 4), why))
        return matches

    def _reasons(self, order: Sequence[int], best: _Scores) -> list[str]:
        """What speaks for each of these entries, in the words of the question."""
        held: dict[int, list[str]] = {i: [] for i in order}
        for term in best.terms:
            documents = self._index.documents(term)
            for i in np.intersect1d(documents, order, assume_unique=True).tolist():
                held[i].append(term)
        words = {key: _shared(key, best.text) for key in {tuple(terms) for terms in held.values()}}
        reasons = [words[tuple(held[i])] for i in order]
        if self._vectors is None:
            return reasons
        return [
            f"{why}; meaning {best.meaning[i]:.2f}" for why, i in zip(reasons, order, strict=True)
        ]


def _shared(held: Sequence[str], text: str) -> str:
    pairs = [term.removeprefix(_JAPANESE) for term in held]
    shared = as_written(held, text) or as_written(pairs, text)
    return f"words: {', '.join(shared[:6])}" if shared else "no word in common"


def question_terms(text: str) -> dict[str, float]:
    """Return the terms of a question with weights; Japanese as the English words behind it.

    Pairs of Japanese characters are left out beside those, except for tools that are described in
    Japanese themselves: in Chinese they meet other pairs by accident.
    """
    english = english_terms(text)
    weights = {t: w for t, w in query_terms(text).items() if not (english and has_cjk(t))}
    weights |= dict.fromkeys(_own_pairs(text), _SAME_PAIR)
    for term, weight in english.items():
        weights[term] = max(weight, weights.get(term, 0.0))
    return weights


def _over(
    alive: NDArray[np.bool_], values: Floats, scale: Callable[[Floats], Floats] = standardise
) -> Floats:
    """Standard scores among the tools that count."""
    if alive.all():
        return scale(values)
    scores = np.zeros_like(values)
    scores[alive] = scale(values[alive])
    return scores


def _standard_meaning(meanings: Floats) -> Floats:
    """Return standard scores; among a few tools that are all alike none is made out to be best."""
    return standardise(meanings, _USUAL_SPREAD)


def _best_of(scores: Sequence[_Scores]) -> _Scores:
    return _Scores(
        np.max([score.total for score in scores], axis=0),
        np.max([score.words for score in scores], axis=0),
        np.max([score.meaning for score in scores], axis=0),
        {term: weight for score in scores for term, weight in score.terms.items()},
        "\n".join(score.text for score in scores),
    )


def _counts(entry: CatalogEntry) -> dict[str, dict[str, float]]:
    return {name: _count_terms(fold(str(getattr(entry, name)))) for name in _FIELDS}


def _count_terms(text: str) -> dict[str, float]:
    """Count the terms of an entry; Japanese also as the English words a question stands for."""
    counts: dict[str, float] = dict(count_terms(text))
    for term, weight in english_terms(text).items():
        counts[term] = counts.get(term, 0.0) + weight
    counts.update(dict.fromkeys(_own_pairs(text), 1.0))
    return counts


def _own_pairs(text: str) -> list[str]:
    """The pairs of characters of a Japanese text, marked as Japanese; kana alone say nothing."""
    if not has_kana(text):
        return []
    pairs = dict.fromkeys(pair for run in runs(text) if has_cjk(run) for pair in bigrams(run))
    return [_JAPANESE + pair for pair in pairs if not _HIRAGANA.fullmatch(pair)]


def _meanings(entries: Sequence[CatalogEntry], vectors: StaticVectors) -> Floats:
    """Return one vector per entry: once with its arguments, once without, added."""
    short = [f"{entry.server} {entry.name} {entry.description}" for entry in entries]
    more = [f"{entry.name} {entry.parameters[:_PARAMETERS_READ]}" for entry in entries]
    full = [for_meaning(f"{text} {rest}") for text, rest in zip(short, more, strict=True)]
    return normalise(vectors.encode(list(map(for_meaning, short))) + vectors.encode(full))


def _server_meanings(
    entries: Sequence[CatalogEntry], meanings: Floats
) -> tuple[Floats, NDArray[np.int64]]:
    names = {name: i for i, name in enumerate(dict.fromkeys(entry.server for entry in entries))}
    server_of = np.array([names[entry.server] for entry in entries], np.int64)
    sums = np.zeros((len(names), meanings.shape[1]), np.float32)
    np.add.at(sums, server_of, meanings)
    return normalise(sums), server_of
