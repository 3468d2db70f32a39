"""Score files by the words of a question: every file at first, then chunks and fields of some.

Each step takes the posting lists of all words at once. What lies in files that are no candidates
is only counted, never looked at further.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evercontext.index.corpus import Corpus
from evercontext.index.corpus_rows import FIELD, FILE, SLOTS
from evercontext.index.question import Question, word_weight
from evercontext.retrieval.bm25f import (
    bm25,
    inverse_document_frequency,
    length_norm,
    saturate,
)
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.ragged import Long
from evercontext.retrieval.terms import has_cjk, stem

# What one occurrence in a field is worth next to one in the body (BM25F); the body last.
_WORTH = np.array([12.0, 3.0, 0.0, 6.0, 3.0, 1.0, 2.0, 0.0], np.float32)
_MOST = np.float32(3.0)
_BODY_B, _SATURATION = 0.6, 6.0
_CHUNK_K1, _CHUNK_B = 1.2, 0.8


class TermScores:
    """Weighted terms, looked up in one corpus."""

    def __init__(
        self, corpus: Corpus, term_weights: Mapping[str, float], most: int | None = None
    ) -> None:
        """``most`` takes only so many terms, the weightiest that the corpus has."""
        self._corpus = corpus
        self.average_lengths: Floats = corpus.average_lengths.astype(np.float32)
        self._frequency = corpus.values("frequency")
        self._unseen = inverse_document_frequency(corpus.live_files, 0)
        self._take_terms(term_weights, corpus.numbers([*term_weights]), most)

    def _take_terms(
        self, term_weights: Mapping[str, float], numbers: list[int | None], most: int | None
    ) -> None:
        known, total = [], 0.0
        for (term, weight), number in zip(term_weights.items(), numbers, strict=True):
            if number is None or not self._frequency[number]:
                # Japanese that no file holds was asked in translation.
                total += 0.0 if has_cjk(term) else 0.5 * weight * self._unseen
                continue
            known.append((weight * self.rarity(number), number))
        if most is not None:
            known = sorted(known, reverse=True)[:most]
        terms = [number for _, number in known]
        self.weights: Floats = np.array([weight for weight, _ in known], np.float32)
        self.total = max(total + float(self.weights.sum()), 1e-6)
        """What a file would have that holds every word."""
        self._body, self._counts, sizes = self._corpus.body.joined(terms)
        self._body_term = np.repeat(np.arange(len(terms), dtype=np.int32), sizes)
        self._fields, self._field_counts, sizes = self._corpus.fields.joined(terms)
        self._field_term = np.repeat(np.arange(len(terms), dtype=np.int32), sizes)
        self._file = self._corpus.values("chunk_file")[self._body]

    def rarity(self, term: int) -> float:
        """Return the inverse document frequency of a term over files."""
        frequency = int(self._frequency[term])
        return inverse_document_frequency(self._corpus.live_files, frequency)

    def bm25f(self) -> Floats:
        """Return how well the words are met by each file of the corpus."""
        corpus, files = self._corpus, self._corpus.file_count
        norm = length_norm(corpus.lengths[:, -1] / self.average_lengths[-1], _BODY_B)
        body = self._counts / norm[self._file]
        fields = _WORTH[self._fields & FIELD] * np.minimum(self._field_counts, _MOST)
        places = (
            self._body_term * files + self._file,
            self._field_term * files + (self._fields >> FILE),
        )
        size = len(self.weights) * files
        counts = np.bincount(np.concatenate(places), np.concatenate((body, fields)), size)
        gains = saturate(counts, _SATURATION).reshape(len(self.weights), files)
        return ((self.weights.astype(np.float64) / self.total) @ gains).astype(np.float32)

    def in_candidates(self, slots: Ints) -> tuple[Floats, Floats]:
        """Return the BM25 of all chunks of some files, file after file, and what fields hold.

        The second has one number for each word, file and field.
        """
        corpus, size = self._corpus, len(slots)
        place = np.full(corpus.file_count, -1, np.int32)
        place[slots] = np.arange(size, dtype=np.int32)
        counts = np.zeros(len(self.weights) * size * SLOTS, np.float32)
        at = place[self._fields >> FILE]
        inside = (at >= 0).nonzero()[0]
        fields = self._fields[inside] & FIELD
        counts[(self._field_term[inside] * size + at[inside]) * SLOTS + fields] = (
            self._field_counts[inside]
        )
        at = place[self._file]
        inside = (at >= 0).nonzero()[0]
        at, term, often = at[inside], self._body_term[inside], self._counts[inside]
        table = counts.reshape(-1, SLOTS)
        table[:, -1] = np.bincount(term * size + at, often, len(table))
        words = self._chunks(slots, at, self._body[inside], often, self.weights[term])
        return words, counts.reshape(len(self.weights), size, SLOTS)

    def _chunks(
        self, slots: Ints, at: Ints, chunks: Ints, often: Floats, weights: Floats
    ) -> Floats:
        corpus = self._corpus
        sizes = corpus.values("chunk_count")[slots]
        ends: Long = np.cumsum(sizes, dtype=np.int64)
        offset = ends - sizes - corpus.values("first_chunk")[slots]
        lengths = corpus.values("chunk_length")[chunks] / np.float32(corpus.average_chunk)
        values = weights * bm25(often, lengths, _CHUNK_K1, _CHUNK_B)
        total = int(ends[-1]) if len(ends) else 0
        return np.bincount(chunks + offset[at], values, total).astype(np.float32)


class QuestionScores(TermScores):
    """The words of one question, looked up in one corpus."""

    def __init__(self, corpus: Corpus, question: Question) -> None:
        super().__init__(corpus, question.terms)
        numbers = corpus.numbers([stem(word) for word in question.words])
        self.word_weights: dict[str, float] = {}
        """What each word of the question counts, by how rare it is."""
        for word, number in zip(question.words, numbers, strict=True):
            value = self._unseen if number is None else self.rarity(number)
            self.word_weights[word] = value * word_weight(word)
        total_weight = sum(self.word_weights.values()) or 1.0
        self.term_weights = {
            number: self.word_weights[word] / total_weight
            for word, number in zip(question.words, numbers, strict=True)
            if number is not None
        }
        """For each term that a name may share with the question: its share of the question."""
