"""Compute the ranking signals of the names that files define."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evercontext.index.analysis import TYPE
from evercontext.index.corpus import Corpus
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.ragged import Long, gather
from evercontext.retrieval.term_keys import term_key


class Definers:
    """The candidates that define one name, whatever its case."""

    def __init__(self, corpus: Corpus, name: str, places: Mapping[int, int]) -> None:
        self._corpus = corpus
        self._key = np.uint64(term_key(name))
        slots = corpus.definers_of(name)
        self.count = len(slots)
        """How many files of the whole corpus do."""
        self._slots = [slot for slot in slots if slot in places]
        self.at = [places[slot] for slot in self._slots]
        """Their places among the candidates."""

    def exact(self) -> Floats:
        """Return 1 for each of ``at`` that defines the name as it is written."""
        first, defined = self._corpus.values("first_name"), self._corpus.values("defined")
        written = self._corpus.values("name_written")
        return np.array(
            [
                bool((written[first[slot] : first[slot] + defined[slot]] == self._key).any())
                for slot in self._slots
            ],
            np.float32,
        )

    def typed(self) -> Floats:
        """Return 1 for each of ``at`` that shows the name as a class, a struct or the like."""
        return np.array([self._shows_type(slot) for slot in self._slots], np.float32)

    def _shows_type(self, slot: int) -> bool:
        corpus = self._corpus
        start = int(corpus.values("first_chunk")[slot])
        chunks = slice(start, start + int(corpus.values("chunk_count")[slot]))
        shown = corpus.values("chunk_name")[chunks]
        typed = shown[(corpus.values("chunk_kind")[chunks] == TYPE) & (shown >= 0)]
        return bool((corpus.values("name_written")[typed] == self._key).any())


class DefinedNames:
    """All names that some files define, file after file."""

    def __init__(self, corpus: Corpus, slots: Ints) -> None:
        self._corpus = corpus
        self._files = len(slots)
        self._sizes = corpus.values("defined")[slots]
        self._first = corpus.values("first_name")[slots]
        self._owner: Long = np.arange(len(slots)).repeat(self._sizes)

    def covered(self, term_weights: Mapping[int, float]) -> tuple[Floats, Floats]:
        """Return per file the best share of the question that one name covers.

        The second counts a name by how much of it was asked for, too.
        """
        corpus, out = self._corpus, np.zeros((2, self._files), np.float32)
        files = self._sizes.nonzero()[0]
        last = self._first[files] + self._sizes[files] - 1
        begins = corpus.values("first_part")[self._first[files]]
        ends = corpus.values("first_part")[last] + corpus.values("part_count")[last]
        share = shares(gather(corpus.values("part_term"), begins, ends - begins), term_weights)
        met = share.nonzero()[0]
        if not len(met):
            return out[0], out[1]
        sizes = gather(corpus.values("part_count"), self._first, self._sizes)
        # A name without parts begins where the next one does: the last that begins there is meant.
        name = (sizes.cumsum() - sizes).searchsorted(met, "right") - 1
        covered = np.bincount(name, share[met], len(sizes))
        exact = covered * np.bincount(name, minlength=len(sizes)) / np.maximum(sizes, 1)
        first = (self._sizes.cumsum() - self._sizes)[files]
        out[0, files] = np.maximum.reduceat(covered, first)
        out[1, files] = np.maximum.reduceat(exact, first)
        return out[0], out[1]

    def used_elsewhere(self) -> Floats:
        """Return per file how often other files use a name that is defined there alone."""
        corpus = self._corpus
        terms = gather(corpus.values("name_term"), self._first, self._sizes)
        alone = corpus.values("definers")[terms] == 1
        used = (corpus.values("frequency")[terms] - 1) * alone
        total = np.bincount(self._owner, used, self._files)
        return np.maximum(total, 0.0).astype(np.float32)


def shares(parts: Ints, term_weights: Mapping[int, float]) -> Floats:
    """Return for each part of a name its share of the question: few terms, so each is sought."""
    out = np.zeros(len(parts), np.float32)
    for term, share in term_weights.items():
        out[parts == term] = share
    return out
