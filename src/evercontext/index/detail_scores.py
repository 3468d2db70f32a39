"""Score files by the details of a long question: words, names and paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evercontext.index.corpus import Corpus
from evercontext.index.corpus_rows import FIELD, FILE
from evercontext.index.question_details import Details
from evercontext.index.word_scores import TermScores
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.term_keys import term_key
from evercontext.retrieval.terms import identifier_term

_MOST_TERMS = 48
"""Words of the rest that are searched for: the rarest of the tree that are there most often."""
_MOST_DEFINERS = 12
"""A name that more files define says nothing about any of them."""
_MOST_ALIKE = 2_000
"""Files of one name whose folders are compared."""
_STEM = 0


class Mentions:
    """The details of one question, looked up in one corpus."""

    def __init__(self, corpus: Corpus, details: Details) -> None:
        self._corpus = corpus
        terms = TermScores(corpus, details.terms, _MOST_TERMS)
        self.words: Floats = terms.bm25f()
        """For each file, how well it meets the words."""
        self.names: dict[int, float] = {}
        """For files that define names of the rest: how many, and how much each says."""
        self._take_names(details.names)
        self.paths: dict[int, float] = {}
        """For files that the rest names by their path: how surely it means each."""
        self.lines: dict[int, set[int]] = {}
        """For those files: the lines that are named with them."""
        for path, lines in details.paths.items():
            for slot, share in self._named(path):
                self.paths[slot] = max(self.paths.get(slot, 0.0), share)
                self.lines.setdefault(slot, set()).update(lines)

    def _take_names(self, names: dict[str, float]) -> None:
        corpus = self._corpus
        first, defined = corpus.values("first_name"), corpus.values("defined")
        written = corpus.values("name_written")
        for name, weight in names.items():
            slots = corpus.definers_of(name)
            key = np.uint64(term_key(name))
            slots = [
                slot
                for slot in slots[: 8 * _MOST_DEFINERS]
                if (written[first[slot] : first[slot] + defined[slot]] == key).any()
            ]
            if not slots or len(slots) > _MOST_DEFINERS:
                continue
            for slot in slots:
                self.names[slot] = self.names.get(slot, 0.0) + weight / len(slots)

    def _named(self, path: str) -> list[tuple[int, float]]:
        """Return the files whose paths end most like this one."""
        parts = path.split("/")
        name = parts[-1]
        term = self._corpus.term(identifier_term(name.rpartition(".")[0]))
        if term is None:
            return []
        posts, _ = self._corpus.fields.of(term)
        slots = (posts[(posts & FIELD) == _STEM] >> FILE).tolist()[:_MOST_ALIKE]
        alike = {
            slot: _shared(parts, self._corpus.path(slot).split("/"))
            for slot in slots
            if self._corpus.alive[slot]
        }
        longest = max(alike.values(), default=0)
        best = [slot for slot, size in alike.items() if size == longest and size]
        return [(slot, 1.0 / len(best)) for slot in best]


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many parts at the end of two paths are the same."""
    count = 0
    for a, b in zip(reversed(first), reversed(second), strict=False):
        if a != b:
            break
        count += 1
    return count
