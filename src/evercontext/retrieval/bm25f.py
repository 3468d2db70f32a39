"""Score documents for weighted terms by BM25 and BM25F.

Every search of the product computes its word scores from the functions of this module, so that
rarity, length normalisation and saturation are defined once. ``FieldIndex`` is the whole of it for
a list of documents that fits in memory; the code index and the memories keep postings of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.postings import Floats, Ints

Values = NDArray[Any]
"""Numbers of single or double precision; the result has the wider one."""
_NO_DOCUMENTS: Ints = np.zeros(0, np.int32)


def inverse_document_frequency(documents: int, containing: int) -> float:
    """Return the rarity of a term that ``containing`` of ``documents`` hold; always positive."""
    return math.log(1.0 + (documents - containing + 0.5) / (containing + 0.5))


def length_norm(relative: Values, b: float | Values) -> Values:
    """Return by what counts are divided for a length, given relative to the average length.

    ``b`` says how strictly: at 0 length does not count, at 1 counts become densities.
    """
    norm: Values = 1 - b + b * relative
    return norm


def saturate(counts: Values, k: float | Values) -> Values:
    """Return counts on a scale from 0 to 1 that reaches one half at ``k``."""
    share: Values = counts / (counts + k)
    return share


def bm25(counts: Values, relative: Values, k1: float, b: float) -> Values:
    """Return the share of a term's rarity that each document earns, from 0 to 1.

    ``relative`` are the documents' lengths relative to the average length.
    """
    return saturate(counts, k1 * length_norm(relative, b))


@dataclass(frozen=True, slots=True)
class Field:
    """The weight of one occurrence in a field, and how much the field's length counts (``b``)."""

    weight: float = 1.0
    b: float = 0.5


@dataclass(frozen=True, slots=True)
class _Posting:
    rarity: float
    documents: Ints
    shares: Floats
    """The share of the rarity that each document earns."""


class FieldIndex:
    """The BM25F index of a fixed list of documents, each a mapping of fields to counted terms."""

    def __init__(
        self,
        documents: Sequence[Mapping[str, Mapping[str, float]]],
        fields: Mapping[str, Field],
        saturation: float,
    ) -> None:
        self._size = len(documents)
        weighted: dict[str, dict[int, float]] = {}
        for name, field in fields.items():
            _add_field([document[name] for document in documents], field, weighted)
        self._postings = {
            term: self._posting(counts, saturation) for term, counts in weighted.items()
        }

    def _posting(self, counts: Mapping[int, float], saturation: float) -> _Posting:
        return _Posting(
            inverse_document_frequency(self._size, len(counts)),
            np.fromiter(counts, np.int32, len(counts)),
            saturate(np.fromiter(counts.values(), np.float32, len(counts)), saturation),
        )

    def documents(self, term: str) -> Ints:
        """Return the documents that hold a term."""
        posting = self._postings.get(term)
        return _NO_DOCUMENTS if posting is None else posting.documents

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return how many documents hold each term."""
        return [len(self.documents(term)) for term in terms]

    def scores(self, terms: Mapping[str, float]) -> Floats:
        """Return for each document the share of what a document with every term would score."""
        scores = np.zeros(self._size, np.float32)
        possible = 0.0
        for term, weight in terms.items():
            posting = self._postings.get(term)
            if posting is not None:
                gain = weight * posting.rarity
                scores[posting.documents] += np.float32(gain) * posting.shares
                possible += gain
        return scores / np.float32(possible) if possible else scores


def _add_field(
    documents: Sequence[Mapping[str, float]], field: Field, weighted: dict[str, dict[int, float]]
) -> None:
    """Add the counts of one field, normalised by its length, to the counts of each term."""
    sizes = np.array([sum(counts.values()) for counts in documents])
    average = max(1.0, float(sizes.mean())) if len(sizes) else 1.0
    norms: list[float] = length_norm(sizes / average, field.b).tolist()
    for number, (counts, norm) in enumerate(zip(documents, norms, strict=True)):
        for term, count in counts.items():
            own = weighted.setdefault(term, {})
            own[number] = own.get(number, 0.0) + field.weight * count / norm
