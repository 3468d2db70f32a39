"""Keep posting lists that grow by one document at the cost of that document.

The bulk is three flat arrays (a CSR matrix by term). A later document goes into a small table
beside it; a removed one is only forgotten by its owner's ``alive`` mask. Both are folded in when
the owner is built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
_NONE: Ints = np.zeros(0, np.int32)


class Postings:
    """For each term, the documents that hold it and how often."""

    def __init__(self) -> None:
        self._starts: Ints = np.zeros(1, np.int32)
        self._documents: Ints = _NONE
        self._counts: Floats = np.zeros(0, np.float32)
        self._later: dict[int, list[int]] = {}
        """For each term, where in the two columns its later documents are."""
        self._later_documents = Column(np.int32)
        self._later_counts = Column(np.float32)

    @classmethod
    def build(cls, terms: Ints, documents: Ints, counts: Floats, size: int) -> Postings:
        """Return postings of ``size`` terms from parallel arrays in any order."""
        built = cls()
        order = np.argsort(terms, kind="stable")
        built._starts = np.zeros(size + 1, np.int32)
        np.cumsum(np.bincount(terms, minlength=size), out=built._starts[1:])
        built._documents = documents[order]
        built._counts = counts[order]
        return built

    @property
    def arrays(self) -> tuple[Ints, Ints, NDArray[Any]]:
        """The bulk: where each term starts, the documents, the counts."""
        return self._starts, self._documents, self._counts

    @classmethod
    def of_arrays(cls, starts: Ints, documents: Ints, counts: NDArray[Any]) -> Postings:
        """Return postings over arrays that ``arrays`` gave."""
        built = cls()
        built._starts, built._documents, built._counts = starts, documents, counts
        return built

    def add_many(self, terms: Ints, documents: Ints, counts: NDArray[Any]) -> None:
        """Take more documents, given by parallel arrays."""
        later = self._later
        for place, term in enumerate(terms.tolist(), len(self._later_documents)):
            known = later.get(term)
            if known is None:
                later[term] = [place]
            else:
                known.append(place)
        self._later_documents.extend(documents)
        self._later_counts.extend(counts)

    def add(self, document: int, terms: Iterable[int], counts: Iterable[int]) -> None:
        """Take one more document."""
        own = np.array(list(terms), np.int32)
        documents = np.full(len(own), document, np.int32)
        self.add_many(own, documents, np.fromiter(counts, np.float32, len(own)))

    def of(self, term: int) -> tuple[Ints, Floats]:
        """Return the documents of a term and its counts in them; each document once."""
        if term + 1 < len(self._starts):
            part = slice(self._starts[term], self._starts[term + 1])
            documents, counts = self._documents[part], self._counts[part]
        else:
            documents, counts = _NONE, self._counts[:0]
        later = self._later.get(term)
        if later is None:
            return documents, counts
        return (
            np.concatenate([documents, self._later_documents.values[later]]),
            np.concatenate([counts, self._later_counts.values[later]]),
        )

    def joined(self, terms: Sequence[int]) -> tuple[Ints, Floats, list[int]]:
        """Return what ``of`` gives for terms, one after another, and how much is of each."""
        postings = [self.of(term) for term in terms]
        if not postings:
            return _NONE, np.zeros(0, np.float32), []
        documents = np.concatenate([documents for documents, _ in postings])
        counts = np.concatenate([counts for _, counts in postings], dtype=np.float32)
        return documents, counts, [len(documents) for documents, _ in postings]


class Column:
    """A growing array: appending costs what is appended, on average."""

    def __init__(self, dtype: type[np.generic], width: int | None = None) -> None:
        self._data = np.zeros(64 if width is None else (64, width), dtype)
        self.values: NDArray[Any] = self._data[:0]
        """The filled part: a view, good until the next ``extend``."""

    @classmethod
    def of(cls, values: NDArray[Any]) -> Column:
        """Return a column over an array that is there already."""
        column = cls(values.dtype.type)
        column._data = column.values = values
        return column

    def __len__(self) -> int:
        return len(self.values)

    def extend(self, values: NDArray[Any]) -> None:
        """Append values (rows, if the column has a width)."""
        size = len(self.values)
        needed = size + len(values)
        if needed > len(self._data):
            grown = np.zeros(
                (max(needed, 2 * len(self._data)), *self._data.shape[1:]), self._data.dtype
            )
            grown[:size] = self.values
            self._data = grown
        self._data[size:needed] = values
        self.values = self._data[:needed]
