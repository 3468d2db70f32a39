"""The signals by which files are ranked, computed for all candidates at once.

Two stages: a field-weighted BM25 over all files picks candidates; every signal is then computed
for those alone. Each signal has a name, so that a result can say why it stands where it stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.analysis import TYPE
from evercontext.index.block import PRIORS, SLOTS
from evercontext.index.corpus import Corpus
from evercontext.index.lexicon import key_of
from evercontext.index.paths import PathFacts
from evercontext.index.question import Question, word_weight
from evercontext.index.stems import StemMatcher
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.ragged import Long, spread
from evercontext.retrieval.tokens import has_cjk, stem, whole

CANDIDATES = 50
BY_MEANING = 10
"""Candidates that a question's meaning may add to those found by its words."""
# (k1, b) per field slot: stem, directory, parent, types, functions, others, header, body.
_K1 = np.array([0.5, 1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 2.5], np.float32)
_B = np.array([0.6, 0.3, 0.3, 0.5, 0.5, 0.5, 0.5, 0.3], np.float32)
# What one occurrence in a field is worth next to one in the body (BM25F).
_WORTH = np.array([12.0, 3.0, 0.0, 6.0, 3.0, 1.0, 2.0, 0.0], np.float32)
_CHUNK_K1, _CHUNK_B = np.float32(1.2), np.float32(0.8)

FIELD_NAMES = ("stem", "directory", "parent", "types", "functions", "others", "header", "body")
STEM_NAMES = (
    "stem_overlap", "stem_matched", "stem_equals", "stem_contained", "stem_first_word",
    "stem_last_word", "stem_all", "parent_matched",
)  # fmt: skip
NAMES = (
    *FIELD_NAMES,
    "bm25f", "bm25f_share", "chunk_best", "chunk_top3", "chunk_sum", "chunk_absolute", "coverage",
    "stem_parent_share",
    *STEM_NAMES,
    "symbol_defined", "symbol_unique", "symbol_stem", "symbol_type",
    "name_defined", "name_type", "name_stem", "capital_defined",
    "definition_coverage", "definition_exact", "centrality",
    *PRIORS,
    "meaning_card", "meaning_mean", "meaning_best", "meaning_top3",
)  # fmt: skip
COLUMN = {name: i for i, name in enumerate(NAMES)}


@dataclass(slots=True)
class Candidates:
    """Files that may answer, their signals, and the chunk scores behind them."""

    slots: Ints
    features: NDArray[np.float32]
    chunks: Long
    """All chunks of the candidates."""
    chunk_owner: Ints
    """For each of ``chunks``: which candidate it belongs to."""
    chunk_words: Floats
    """For each of ``chunks``: BM25."""
    chunk_meaning: Floats
    """For each of ``chunks``: cosine to the question."""
    worth: Floats
    """For each term of the corpus: its share of what the question gives for a name."""


class Scorer:
    """Computes candidates and their signals for one question."""

    def __init__(self, corpus: Corpus, question: Question, vector: Floats | None) -> None:
        self.corpus = corpus
        self.question = question
        self.vector = vector if corpus.vectors is not None else None
        self._averages = corpus.average_lengths.astype(np.float32)
        self._files = corpus.file_count
        self._frequency = corpus.values("frequency")
        self._terms, self._weights, self._total = self._known_terms()
        self._body = np.zeros((len(self._terms), self._files), np.float32)
        self._fields: list[tuple[Ints, Floats]] = [corpus.fields.of(t) for t in self._terms]

    def _known_terms(self) -> tuple[list[int], Floats, float]:
        corpus, ids, weights, total = self.corpus, [], [], 0.0
        unseen = math.log(2.0 * corpus.live_files + 2.0)
        for term, weight in self.question.terms.items():
            found = corpus.term(term)
            if found is None or self._frequency[found] == 0:
                # Japanese that no file holds was asked in translation.
                total += 0.0 if has_cjk(term) else 0.5 * weight * unseen
                continue
            ids.append(found)
            weights.append(weight * self.rarity(found))
        values = np.array(weights, np.float32)
        return ids, values, max(total + float(values.sum()), 1e-6)

    def rarity(self, term: int) -> float:
        """Return the inverse document frequency of a term over files."""
        frequency = int(self._frequency[term])
        return math.log(1.0 + (self.corpus.live_files - frequency + 0.5) / (frequency + 0.5))

    def run(self, allowed: NDArray[np.bool_] | None = None) -> Candidates:
        """Return the candidates with all signals; ``allowed`` limits the files."""
        chunk_scores = self._score_chunks()
        bm25f = self._bm25f()
        slots = self._choose(bm25f, allowed)
        out = np.zeros((len(slots), len(NAMES)), np.float32)
        chunks, owner = self.corpus.chunks_of(slots)
        words = chunk_scores[chunks]
        word_weights = self._word_weights()
        worth = self._worth(word_weights) / np.float32(sum(word_weights.values()) or 1.0)
        if not len(slots):
            return Candidates(slots, out, chunks, owner, words, words, worth)
        self._lexical(out, slots, bm25f)
        self._chunk_signals(out, words, owner)
        facts = [self.corpus.facts(slot) for slot in slots.tolist()]
        out[:, _STEM] = StemMatcher(self.question.words, word_weights).rows(facts)
        names, owners = self._defined(slots)
        self._symbol_signals(out, slots, facts, _Symbols(self.corpus, names, owners, chunks, owner))
        self._definition_signals(out, names, owners, worth)
        self._centrality(out, names, owners)
        out[:, _PRIORS] = self.corpus.values("priors")[slots]
        meaning = self._meaning(out, slots, chunks, owner)
        return Candidates(slots, out, chunks, owner, words, meaning, worth)

    def _score_chunks(self) -> Floats:
        corpus = self.corpus
        files, lengths = corpus.values("chunk_file"), corpus.values("chunk_length")
        scores = np.zeros(len(files), np.float32)
        scale = _CHUNK_K1 * _CHUNK_B / np.float32(corpus.average_chunk)
        floor = _CHUNK_K1 * (1 - _CHUNK_B)
        for i, (term, weight) in enumerate(zip(self._terms, self._weights, strict=True)):
            documents, counts = corpus.body.of(term)
            counts = counts.astype(np.float32, copy=False)
            norm = lengths[documents]
            norm *= scale
            norm += floor
            norm += counts
            np.divide(counts, norm, out=norm)
            norm *= weight
            scores[documents] += norm
            self._body[i] = np.bincount(files[documents], counts, self._files)
        return scores

    def _bm25f(self) -> Floats:
        length = self.corpus.lengths[:, -1] / self._averages[-1]
        frequency = self._body / (np.float32(0.4) + np.float32(0.6) * length)
        for i, (documents, counts) in enumerate(self._fields):
            worth = _WORTH[documents % SLOTS] * np.minimum(counts, 3.0)
            frequency[i] += np.bincount(documents // SLOTS, worth, self._files)
        scores: Floats = self._weights @ (frequency / (frequency + np.float32(6.0)))
        return scores / np.float32(self._total)

    def _choose(self, bm25f: Floats, allowed: NDArray[np.bool_] | None) -> Ints:
        mask = self.corpus.alive if allowed is None else self.corpus.alive & allowed
        chosen = set(_top(bm25f * mask, CANDIDATES))
        for name in (self.question.symbol, *self.question.names):
            definers = self.corpus.definers_of(name) if name else []
            chosen.update(slot for slot in definers[:CANDIDATES] if mask[slot])
        if self.vector is not None and self._files:
            meaning = self.corpus.values("cards") @ self.vector
            chosen.update(_top(meaning * mask, BY_MEANING))
        return np.array(sorted(chosen), np.int32)

    def _lexical(self, out: NDArray[np.float32], slots: Ints, bm25f: Floats) -> None:
        place = np.full(self._files, -1, np.int32)
        place[slots] = np.arange(len(slots))
        counts = np.zeros((len(self._terms), len(slots), SLOTS), np.float32)
        for i, (documents, found) in enumerate(self._fields):
            at = place[documents // SLOTS]
            kept = at >= 0
            counts[i, at[kept], documents[kept] % SLOTS] = found[kept]
        counts[:, :, -1] = self._body[:, slots]
        length = self.corpus.lengths[slots] / self._averages
        scaled = counts / (counts + _K1 * (1 - _B + _B * length) + np.float32(1e-9))
        share = self._weights / np.float32(self._total)
        out[:, : len(FIELD_NAMES)] = np.tensordot(share, scaled, 1)
        out[:, COLUMN["bm25f"]] = bm25f[slots]
        out[:, COLUMN["bm25f_share"]] = _share(bm25f[slots])
        out[:, COLUMN["coverage"]] = share @ (counts > 0).any(axis=2)
        out[:, COLUMN["stem_parent_share"]] = share @ (counts[:, :, 0] + counts[:, :, 2] > 0)

    def _chunk_signals(self, out: NDArray[np.float32], words: Floats, owner: Ints) -> None:
        best, top3, total = by_owner(words, owner, len(out))
        out[:, COLUMN["chunk_best"]] = _share(best)
        out[:, COLUMN["chunk_top3"]] = _share(top3)
        out[:, COLUMN["chunk_sum"]] = _share(np.log1p(total))
        out[:, COLUMN["chunk_absolute"]] = best / np.float32(self._total)

    def _word_weights(self) -> dict[str, float]:
        weights = {}
        unseen = math.log(2.0 * self.corpus.live_files + 2.0)
        for word in self.question.words:
            found = self.corpus.term(stem(word))
            value = unseen if found is None else self.rarity(found)
            weights[word] = value * word_weight(word)
        return weights

    def _defined(self, slots: Ints) -> tuple[Long, Long]:
        """Return the names that the candidates define, and whose each is."""
        sizes = self.corpus.values("defined")[slots]
        names = spread(self.corpus.values("first_name")[slots], sizes)
        return names, np.repeat(np.arange(len(slots)), sizes)

    def _symbol_signals(
        self, out: NDArray[np.float32], slots: Ints, facts: list[PathFacts], symbols: _Symbols
    ) -> None:
        question = self.question
        if question.symbol:
            target = whole(question.symbol)
            out[:, COLUMN["symbol_stem"]] = [fact.stem_term == target for fact in facts]
            definers = self.corpus.definers_of(question.symbol)
            at = np.isin(slots, definers)
            exact = symbols.defined(question.symbol, len(out))
            out[at, COLUMN["symbol_defined"]] = np.where(exact[at], 1.0, 0.6)
            out[at, COLUMN["symbol_unique"]] = 1.0 / max(1, len(definers))
            out[at, COLUMN["symbol_type"]] = symbols.typed(question.symbol, len(out))[at]
        for name in question.names:
            target = whole(name)
            out[:, COLUMN["name_stem"]] += [fact.stem_term == target for fact in facts]
            share = 1.0 / len(question.names)
            exact = symbols.defined(name, len(out))
            if exact.any():
                out[exact, COLUMN["name_defined"]] += share / self._definers(name) ** 0.5
                out[:, COLUMN["name_type"]] += share * (exact & symbols.typed(name, len(out)))
        for name in question.capitals:
            exact = symbols.defined(name, len(out))
            if exact.any():
                share = 1.0 / len(question.capitals)
                out[exact, COLUMN["capital_defined"]] += share / self._definers(name) ** 0.5

    def _definers(self, name: str) -> int:
        return max(1, len(self.corpus.definers_of(name)))

    def _definition_signals(
        self, out: NDArray[np.float32], names: Long, owner: Long, worth: Floats
    ) -> None:
        """Best share of the question that one definition's name covers."""
        sizes = self.corpus.values("part_count")[names]
        names, owner, sizes = names[sizes > 0], owner[sizes > 0], sizes[sizes > 0]
        if not len(sizes):
            return
        places = spread(self.corpus.values("first_part")[names], sizes)
        gains = worth[self.corpus.values("part_term")[places]]
        starts = np.cumsum(sizes) - sizes
        covered = np.add.reduceat(gains, starts)
        exact = np.add.reduceat((gains > 0).astype(np.float32), starts) / sizes
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        owners = owner[first]
        out[owners, COLUMN["definition_coverage"]] = np.maximum.reduceat(covered, first)
        out[owners, COLUMN["definition_exact"]] = np.maximum.reduceat(covered * exact, first)

    def _worth(self, weights: dict[str, float]) -> Floats:
        """Return for each term of the corpus what the question gives for it."""
        value = np.zeros(len(self._frequency), np.float32)
        for word, weight in weights.items():
            found = self.corpus.term(stem(word))
            if found is not None:
                value[found] = weight
        return value

    def _centrality(self, out: NDArray[np.float32], names: Long, owner: Long) -> None:
        """How often other files use a name that is defined here alone."""
        terms = self.corpus.values("name_term")[names]
        alone = self.corpus.values("definers")[terms] == 1
        used = self._frequency[terms[alone]] - 1
        total = np.bincount(owner[alone], used, len(out))
        out[:, COLUMN["centrality"]] = np.log1p(np.maximum(total, 0))

    def _meaning(self, out: NDArray[np.float32], slots: Ints, chunks: Long, owner: Ints) -> Floats:
        if self.vector is None:
            return np.zeros(len(chunks), np.float32)
        vectors = self.corpus.values("chunk_vectors").take(chunks, axis=0).astype(np.float32)
        cosine: Floats = (vectors @ self.vector) / np.float32(127.0)
        best, top3, total = by_owner(cosine, owner, len(out))
        sizes = np.maximum(np.bincount(owner, minlength=len(out)), 1)
        out[:, COLUMN["meaning_card"]] = self.corpus.values("cards")[slots] @ self.vector
        out[:, COLUMN["meaning_best"]] = best
        out[:, COLUMN["meaning_top3"]] = top3 / np.minimum(sizes, 3)
        out[:, COLUMN["meaning_mean"]] = total / sizes
        return cosine


@dataclass(frozen=True, slots=True)
class _Symbols:
    """The names of the candidates; looked at only if the question has names."""

    corpus: Corpus
    names: Long
    owners: Long
    chunks: Long
    chunk_owners: Ints

    def defined(self, name: str, files: int) -> NDArray[np.bool_]:
        """Tell which of the candidates define a name, written exactly so."""
        written = self.corpus.values("name_written")[self.names]
        found = self.owners[written == np.uint64(key_of(name))]
        return np.bincount(found, minlength=files) > 0

    def typed(self, name: str, files: int) -> NDArray[np.bool_]:
        """Tell which of the candidates show a name as a class, a struct or the like."""
        shown = self.corpus.values("chunk_name")[self.chunks]
        typed = (self.corpus.values("chunk_kind")[self.chunks] == TYPE) & (shown >= 0)
        written = self.corpus.values("name_written")[shown[typed]]
        found = self.chunk_owners[typed][written == np.uint64(key_of(name))]
        return np.bincount(found, minlength=files) > 0


_STEM = slice(COLUMN[STEM_NAMES[0]], COLUMN[STEM_NAMES[-1]] + 1)
_PRIORS = slice(COLUMN[PRIORS[0]], COLUMN[PRIORS[-1]] + 1)


def _top(scores: Floats, count: int) -> list[int]:
    count = min(count, len(scores))
    if not count:
        return []
    best = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    found: list[int] = best[scores[best] > 0].tolist()
    return found


def _share(values: NDArray[Any]) -> NDArray[Any]:
    return values / max(float(values.max()), 1e-6)


def by_owner(values: Floats, owner: Ints, size: int) -> tuple[Floats, Floats, Floats]:
    """Return per owner: the best value, the sum of the best three, the sum. Owners ascend."""
    counts = np.bincount(owner, minlength=size)
    starts = np.cumsum(counts) - counts
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    # One plain sort orders by owner and then by value: each owner has a range of its own.
    keys = owner * 4.0 - values / largest
    keys.sort()
    top = [np.zeros(size, np.float32) for _ in range(3)]
    for rank, at in enumerate(top):
        has = np.flatnonzero(counts > rank)
        at[has] = (has * 4.0 - keys[starts[has] + rank]) * largest
    total = np.bincount(owner, values, size).astype(np.float32)
    return top[0], top[0] + top[1] + top[2], total
