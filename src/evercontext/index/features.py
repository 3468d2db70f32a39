"""The signals by which files are ranked, computed for all candidates at once.

Two stages: a field-weighted BM25 over all files picks candidates; every signal is then computed
for those alone. Each signal has a name, so that a result can say why it stands where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.corpus import PRIORS, SLOTS, Corpus, FileEntry
from evercontext.index.question import Question, word_weight
from evercontext.index.stems import StemMatcher
from evercontext.retrieval.postings import Floats, Ints
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
    chunks: Ints
    """All chunks of the candidates."""
    chunk_owner: Ints
    """For each of ``chunks``: which candidate it belongs to."""
    chunk_words: Floats
    """For each of ``chunks``: BM25."""
    chunk_meaning: Floats
    """For each of ``chunks``: cosine to the question."""


class Scorer:
    """Computes candidates and their signals for one question."""

    def __init__(self, corpus: Corpus, question: Question, vector: Floats | None) -> None:
        self.corpus = corpus
        self.question = question
        self.vector = vector if corpus.vectors is not None else None
        self._averages = corpus.average_lengths.astype(np.float32)
        self._files = len(corpus.files)
        self._terms, self._weights, self._total = self._known_terms()
        self._body = np.zeros((len(self._terms), self._files), np.float32)
        self._fields: list[tuple[Ints, Floats]] = [corpus.fields.of(t) for t in self._terms]

    def _known_terms(self) -> tuple[list[int], Floats, float]:
        corpus, ids, weights, total = self.corpus, [], [], 0.0
        unseen = float(np.log(2.0 * corpus.live_files + 2.0))
        for term, weight in self.question.terms.items():
            found = corpus.terms.get(term)
            if found is None or corpus.frequency[found] == 0:
                # Japanese that no file holds was asked in translation.
                total += 0.0 if has_cjk(term) else 0.5 * weight * unseen
                continue
            ids.append(found)
            weights.append(weight * self.rarity(found))
        values = np.array(weights, np.float32)
        return ids, values, max(total + float(values.sum()), 1e-6)

    def rarity(self, term: int) -> float:
        """Return the inverse document frequency of a term over files."""
        frequency = float(self.corpus.frequency[term])
        return float(np.log(1.0 + (self.corpus.live_files - frequency + 0.5) / (frequency + 0.5)))

    def run(self, allowed: NDArray[np.bool_] | None = None) -> Candidates:
        """Return the candidates with all signals; ``allowed`` limits the files."""
        chunk_scores = self._score_chunks()
        bm25f = self._bm25f()
        slots = self._choose(bm25f, allowed)
        out = np.zeros((len(slots), len(NAMES)), np.float32)
        chunks, owner = self._chunks_of(slots)
        words = chunk_scores[chunks]
        if not len(slots):
            return Candidates(slots, out, chunks, owner, words, words)
        self._lexical(out, slots, bm25f)
        self._chunk_signals(out, words, owner)
        entries = [self.corpus.files[slot] for slot in slots]
        word_weights = self._word_weights()
        matcher = StemMatcher(self.question.words, word_weights)
        out[:, _STEM] = [matcher.row(entry.facts) for entry in entries]
        self._symbol_signals(out, entries, slots)
        self._definition_signals(out, entries, word_weights)
        self._centrality(out, entries)
        out[:, _PRIORS] = self.corpus.priors[slots]
        meaning = self._meaning(out, slots, chunks, owner)
        return Candidates(slots, out, chunks, owner, words, meaning)

    def _score_chunks(self) -> Floats:
        corpus = self.corpus
        scores = np.zeros(len(corpus.chunk_file), np.float32)
        scale = _CHUNK_K1 * _CHUNK_B / np.float32(corpus.average_chunk)
        floor = _CHUNK_K1 * (1 - _CHUNK_B)
        for i, (term, weight) in enumerate(zip(self._terms, self._weights, strict=True)):
            documents, counts = corpus.body.of(term)
            norm = floor + scale * corpus.chunk_length[documents]
            scores[documents] += weight * counts / (counts + norm)
            files = corpus.chunk_file[documents]
            self._body[i] = np.bincount(files, weights=counts, minlength=self._files)
        return scores

    def _bm25f(self) -> Floats:
        length = self.corpus.lengths[:, -1] / self._averages[-1]
        frequency = self._body / (np.float32(0.4) + np.float32(0.6) * length)
        for i, (documents, counts) in enumerate(self._fields):
            worth = _WORTH[documents % SLOTS] * np.minimum(counts, 3.0)
            frequency[i] += np.bincount(documents // SLOTS, weights=worth, minlength=self._files)
        scores: Floats = self._weights @ (frequency / (frequency + np.float32(6.0)))
        return scores / np.float32(self._total)

    def _choose(self, bm25f: Floats, allowed: NDArray[np.bool_] | None) -> Ints:
        mask = self.corpus.alive if allowed is None else self.corpus.alive & allowed
        chosen = set(_top(np.where(mask, bm25f, 0.0), CANDIDATES))
        for name in (self.question.symbol, *self.question.names):
            definers = self.corpus.symbols.get(name.lower(), []) if name else []
            chosen.update(slot for slot in definers[:CANDIDATES] if mask[slot])
        if self.vector is not None and self._files:
            meaning = self.corpus.cards @ self.vector
            chosen.update(_top(np.where(mask, meaning, 0.0), BY_MEANING))
        return np.array(sorted(chosen), np.int32)

    def _chunks_of(self, slots: Ints) -> tuple[Ints, Ints]:
        entries = [self.corpus.files[slot] for slot in slots]
        sizes = np.array([len(entry.spans) for entry in entries], np.int32)
        firsts = np.array([entry.first_chunk for entry in entries], np.int32)
        owner = np.repeat(np.arange(len(slots), dtype=np.int32), sizes)
        within = np.arange(len(owner), dtype=np.int32) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return (np.repeat(firsts, sizes) + within).astype(np.int32), owner

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
        unseen = float(np.log(2.0 * self.corpus.live_files + 2.0))
        for word in self.question.words:
            found = self.corpus.terms.get(stem(word))
            value = unseen if found is None else self.rarity(found)
            weights[word] = value * word_weight(word)
        return weights

    def _symbol_signals(
        self, out: NDArray[np.float32], entries: list[FileEntry], slots: Ints
    ) -> None:
        question = self.question
        place = {int(slot): i for i, slot in enumerate(slots)}
        if question.symbol:
            target = whole(question.symbol)
            out[:, COLUMN["symbol_stem"]] = [stem(e.facts.stem) == target for e in entries]
            definers = self.corpus.symbols.get(question.symbol.lower(), [])
            for i in (place[slot] for slot in definers if slot in place):
                out[i, COLUMN["symbol_defined"]] = (
                    1.0 if question.symbol in entries[i].names else 0.6
                )
                out[i, COLUMN["symbol_unique"]] = 1.0 / len(definers)
                out[i, COLUMN["symbol_type"]] = question.symbol in entries[i].types
        for name in question.names:
            target = whole(name)
            out[:, COLUMN["name_stem"]] += [stem(e.facts.stem) == target for e in entries]
        self._named(out, entries, place, "name_defined", question.names)
        self._named(out, entries, place, "capital_defined", question.capitals)

    def _named(
        self,
        out: NDArray[np.float32],
        entries: list[FileEntry],
        place: dict[int, int],
        column: str,
        names: tuple[str, ...],
    ) -> None:
        for name in names:
            definers = self.corpus.symbols.get(name.lower(), [])
            for i in (place[slot] for slot in definers if slot in place):
                if name not in entries[i].names:
                    continue
                out[i, COLUMN[column]] += 1.0 / len(definers) ** 0.5 / len(names)
                if column == "name_defined":
                    out[i, COLUMN["name_type"]] += (name in entries[i].types) / len(names)

    def _definition_signals(
        self, out: NDArray[np.float32], entries: list[FileEntry], weights: dict[str, float]
    ) -> None:
        """Best share of the question that one definition's name covers."""
        parts = np.concatenate([entry.part_ids for entry in entries])
        sizes = np.concatenate([entry.part_sizes for entry in entries])
        owner = np.repeat(np.arange(len(entries)), [len(e.part_sizes) for e in entries])
        owner, sizes = owner[sizes > 0], sizes[sizes > 0]
        if not len(sizes):
            return
        value = np.zeros(len(self.corpus.frequency), np.float32)
        for word, weight in weights.items():
            found = self.corpus.terms.get(stem(word))
            if found is not None:
                value[found] = weight
        gains = value[parts]
        starts = np.cumsum(sizes) - sizes
        covered = np.add.reduceat(gains, starts) / (sum(weights.values()) or 1.0)
        exact = np.add.reduceat((gains > 0).astype(np.float32), starts) / sizes
        np.maximum.at(out[:, COLUMN["definition_coverage"]], owner, covered)
        np.maximum.at(out[:, COLUMN["definition_exact"]], owner, covered * exact)

    def _centrality(self, out: NDArray[np.float32], entries: list[FileEntry]) -> None:
        """How often other files use a name that is defined here alone."""
        names = np.concatenate([entry.name_ids for entry in entries])
        owner = np.repeat(np.arange(len(entries)), [len(e.name_ids) for e in entries])
        alone = self.corpus.definers[names] == 1
        used = self.corpus.frequency[names[alone]] - 1
        total = np.bincount(owner[alone], weights=used, minlength=len(entries))
        out[:, COLUMN["centrality"]] = np.log1p(np.maximum(total, 0))

    def _meaning(self, out: NDArray[np.float32], slots: Ints, chunks: Ints, owner: Ints) -> Floats:
        if self.vector is None:
            return np.zeros(len(chunks), np.float32)
        vectors = self.corpus.chunk_vectors[chunks].astype(np.float32)
        cosine: Floats = (vectors @ self.vector) / np.float32(127.0)
        best, top3, total = by_owner(cosine, owner, len(out))
        sizes = np.maximum(np.bincount(owner, minlength=len(out)), 1)
        out[:, COLUMN["meaning_card"]] = self.corpus.cards[slots] @ self.vector
        out[:, COLUMN["meaning_best"]] = best
        out[:, COLUMN["meaning_top3"]] = top3 / np.minimum(sizes, 3)
        out[:, COLUMN["meaning_mean"]] = total / sizes
        return cosine


_STEM = slice(COLUMN[STEM_NAMES[0]], COLUMN[STEM_NAMES[-1]] + 1)
_PRIORS = slice(COLUMN[PRIORS[0]], COLUMN[PRIORS[-1]] + 1)


def _top(scores: Floats, count: int) -> list[int]:
    count = min(count, len(scores))
    if not count:
        return []
    best = np.argpartition(-scores, count - 1)[:count]
    found: list[int] = best[scores[best] > 0].tolist()
    return found


def _share(values: NDArray[Any]) -> NDArray[Any]:
    return values / max(float(values.max()), 1e-6)


def by_owner(values: Floats, owner: Ints, size: int) -> tuple[Floats, Floats, Floats]:
    """Return per owner: the best value, the sum of the best three, the sum. Owners ascend."""
    best, top3 = np.zeros(size, np.float32), np.zeros(size, np.float32)
    order = np.lexsort((-values, owner))
    ranked = values[order]
    counts = np.bincount(owner, minlength=size)
    starts = np.cumsum(counts) - counts
    for rank in range(3):
        has = counts > rank
        at = ranked[starts[has] + rank]
        top3[has] += at
        if rank == 0:
            best[has] = at
    return best, top3, np.bincount(owner, weights=values, minlength=size).astype(np.float32)
