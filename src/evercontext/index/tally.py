"""Count the words of one file, row by row: its terms, and what its chunks mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evercontext.index.lexicon import Lexicon, first_of_each
from evercontext.index.scan import Scan
from evercontext.retrieval.postings import Ints
from evercontext.retrieval.ragged import Long
from evercontext.retrieval.term_keys import Keys
from evercontext.retrieval.vectors import ByteVector, to_bytes

_MOST = 65_535
_MOST_TERMS = 60_000
"""Different terms counted in one file, so that a position fits two bytes."""
_MOST_CELLS = 2_000_000
"""Cells of one dense table: bounds the memory that a large file takes."""
_AT_ONCE = 32
"""Chunks whose meaning is worked out at once: they share words, and the whole file does not."""
_FINE = 1024.0
"""Weights are whole numbers of this part, so that their sum is the same in every order."""

Short = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of (position in the terms, how often): chunks, then fields."""

    offsets: Ints
    positions: Short
    counts: Short

    def row(self, i: int) -> slice:
        """Where row ``i`` lies in ``positions`` and ``counts``."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))


class Tally:
    """Counts words in rows; the lexicon must not forget meanwhile."""

    def __init__(self, lexicon: Lexicon, words: Scan) -> None:
        self._lexicon = lexicon
        keys = words.rows << 32 | lexicon.runs(words)
        keys.sort()
        first = first_of_each(keys)
        self._times = _gaps(first, len(keys))
        self._row, self._run = keys[first] >> 32, keys[first] & 0xFFFFFFFF

    def terms(self, rows: int, names: Keys) -> tuple[Keys, Counts]:
        """Return all terms of the first rows, names included, and the counts of each row."""
        end = int(np.searchsorted(self._row, rows))
        found, sizes = self._lexicon.terms(self._run[:end])
        numbers, place = self._lexicon.term_places.of(found)
        keys = self._lexicon.term_keys(numbers)
        terms = np.sort(np.concatenate([keys, names]))
        terms = terms[first_of_each(terms)][:_MOST_TERMS]
        width = len(terms) + 1
        position = np.searchsorted(terms, keys)[place]
        cells = np.repeat(self._row[:end] * width, sizes) + position
        cells, times = _summed(cells, np.repeat(self._times[:end], sizes), width * rows)
        row, position = np.divmod(cells, width)
        if len(terms) == _MOST_TERMS:
            kept = position < len(terms)
            row, position, times = row[kept], position[kept], times[kept]
        return terms, Counts(
            np.searchsorted(row, np.arange(rows + 1)).astype(np.int32),
            position.astype(np.uint16),
            np.minimum(times, _MOST).astype(np.uint16),
        )

    def meaning(self, chunks: int, names: int) -> ByteVector:
        """Return the meaning of the first ``chunks`` rows, and of the row of names."""
        vectors = self._lexicon.vectors
        assert vectors is not None
        telling = self._lexicon.telling(self._run) & (self._row < chunks)
        used = np.flatnonzero(telling | (self._row == names))
        run, row = self._run[used], np.minimum(self._row[used], chunks)
        pieces, sizes = self._lexicon.pieces(run)
        weight = np.repeat(np.sqrt(self._times[used]), sizes)
        weight = np.rint(weight * _FINE) / _FINE
        row = np.repeat(row, sizes)
        starts = np.arange(0, chunks + 1, _AT_ONCE)
        bounds = np.searchsorted(row, [*starts.tolist(), chunks + 1])
        out = np.zeros((chunks + 1, vectors.dimensions), np.float32)
        for start, first, end in zip(starts, bounds[:-1], bounds[1:], strict=True):
            rows = out[start : start + _AT_ONCE]
            part = slice(first, end)
            ids, place = self._lexicon.piece_places.of(pieces[part])
            cells = (row[part] - start) * len(ids) + place
            shares = np.bincount(cells, weight[part], len(rows) * len(ids)).astype(np.float32)
            np.matmul(shares.reshape(len(rows), -1), vectors.piece_vectors(ids), out=rows)
        return to_bytes(out)


def _gaps(starts: Long, end: int) -> Long:
    """Return the lengths of the pieces that begin at ``starts``."""
    out = np.empty_like(starts)
    out[:-1] = starts[1:]
    if len(out):
        out[-1] = end
    out -= starts
    return out


def _summed(cells: Long, weights: Long, count: int) -> tuple[Long, Long]:
    """Return the cells in order, each once, and the sums of their weights."""
    if count <= _MOST_CELLS:
        table = np.bincount(cells, weights, count)
        filled = np.flatnonzero(table)
        return filled, table[filled].astype(np.int64)
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    first = first_of_each(ordered)
    return ordered[first], np.add.reduceat(weights[order], first) if len(first) else first
