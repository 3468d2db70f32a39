"""Find and count the words of files: their terms, and what their chunks mean.

Three steps, each by numpy over a whole file. ``scan`` finds where words begin and end and computes
a number from the bytes of each: cutting a text into strings, only to look each up among those met
before, costs more than all the counting after it. ``Lexicon`` remembers what is known of a word in
this process: its terms, its pieces, its keys. ``TermCounter`` counts the words row by row. Numbers
differ from process to process and never leave it; what is stored are keys, which do not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evercontext.index.analysis import Counts
from evercontext.retrieval.postings import Column
from evercontext.retrieval.ragged import Long, Ragged
from evercontext.retrieval.static_vectors import StaticVectors
from evercontext.retrieval.term_keys import Keys, term_key, term_keys
from evercontext.retrieval.terms import runs, split_identifier, stem, terms_of_parts
from evercontext.retrieval.vectors import ByteVector, to_bytes

_BLOCK = 1 << 17
"""Bytes that are worked on at once: bounds the memory, and stays near the processor."""
_FACTOR = 0x9E3779B97F4A7C15
_INVERSE = pow(_FACTOR, -1, 1 << 64)
_ASCII = 128
_IN_WORD = bytes(b >= _ASCII or chr(b).isalnum() or chr(b) == "_" for b in range(256))
"""For each byte: 1 if it is part of a word."""
_NEWLINE = ord("\n")


@dataclass(frozen=True, slots=True)
class ScannedWords:
    """The words of some bytes: where they are, in which row, and their numbers."""

    data: bytes
    starts: Long
    ends: Long
    rows: Long
    numbers: Keys

    def __len__(self) -> int:
        return len(self.numbers)

    def texts(self, words: Long) -> list[str]:
        """Return some words as they are written."""
        places = zip(self.starts[words].tolist(), self.ends[words].tolist(), strict=True)
        return [self.data[a:b].decode("utf-8", "surrogatepass") for a, b in places]


def line_starts(data: bytes) -> Long:
    """Return where the lines of bytes begin that begin with an empty one, from the second."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1


def scan(data: bytes, bounds: Long) -> ScannedWords:
    """Return the words of folded text, in rows that begin at ``bounds``.

    The data must begin and end with a newline.
    """
    blocks = [_scan_block(data, first, last) for first, last in _blocks(data)]
    starts, ends, numbers = (np.concatenate(part) for part in zip(*blocks, strict=True))
    rows = np.searchsorted(bounds, starts, side="right") - 1
    words = ScannedWords(data, starts, ends, rows, numbers)
    return words if data.isascii() else _with_wide_words(words)


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield first and last byte of each block; both are newlines."""
    first, end = 0, len(data) - 1
    while True:
        last = end
        if end - first > _BLOCK:
            last = data.rfind(b"\n", first + 1, first + _BLOCK)
            if last < 0:
                last = data.find(b"\n", first + _BLOCK)
        yield first, last
        if last == end:
            return
        first = last


def _scan_block(data: bytes, first: int, last: int) -> tuple[Long, Long, Keys]:
    """Return where words begin and end, and their numbers: sums of bytes times powers."""
    size = last - first + 1
    read = np.frombuffer(data, np.uint8, size, first)
    # Looking bytes up in a table of numpy would first make eight bytes of each.
    inside = np.frombuffer(data[first : last + 1].translate(_IN_WORD), np.uint8)
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    before, ends = edges[::2], edges[1::2]
    powers, inverses = _powers(1 << max(10, (size - 1).bit_length()))
    sums = read.astype(np.uint64)
    sums *= powers[:size]
    np.cumsum(sums, out=sums)
    return before + (first + 1), ends + (first + 1), (sums[ends] - sums[before]) * inverses[before]


@lru_cache(maxsize=8)
def _powers(count: int) -> tuple[Keys, Keys]:
    """Return the first powers of the factor and of its inverse."""
    factors = [np.full(count, n, np.uint64) for n in (_FACTOR, _INVERSE)]
    powers, inverses = (np.multiply.accumulate(f) for f in factors)
    return powers, inverses


def _with_wide_words(words: ScannedWords) -> ScannedWords:
    """Cut again what holds more than ASCII: only the letters tell words from punctuation there."""
    wide = np.cumsum(np.frombuffer(words.data, np.uint8) >= _ASCII)
    has_wide = wide[words.ends - 1] > wide[words.starts - 1]
    parts = [runs(text) for text in words.texts(np.flatnonzero(has_wide))]
    texts = "\n".join(["", *(text for part in parts for text in part), ""])
    more = texts.encode("utf-8", "surrogatepass")
    starts, ends, numbers = _scan_block(more, 0, len(more) - 1)
    rows = np.repeat(words.rows[has_wide], [len(part) for part in parts])
    plain, size = ~has_wide, len(words.data)
    return ScannedWords(
        words.data + more,
        np.concatenate([words.starts[plain], starts + size]),
        np.concatenate([words.ends[plain], ends + size]),
        np.concatenate([words.rows[plain], rows]),
        np.concatenate([words.numbers[plain], numbers]),
    )


_MOST_RUNS = 150_000
_MOST_PARTS = 255
_Item = TypeVar("_Item")
_Key = TypeVar("_Key", int, str)
_SILENT = 2
"""Runs of so few letters say nothing about what a chunk means."""


class _Numbers(dict[_Key, int]):
    """Gives every new key the next number, and remembers which were new."""

    def __init__(self) -> None:
        self.new: list[_Key] = []

    def __missing__(self, key: _Key) -> int:
        number = self[key] = len(self)
        self.new.append(key)
        return number


def first_of_each(ordered: Long) -> Long:
    """Return where each value of an ordered array is met first."""
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


class Renumbering:
    """Tells the different values among many, and where each is among those."""

    def __init__(self) -> None:
        self._places: Long = np.zeros(1024, np.int64)

    def of(self, values: Long) -> tuple[Long, Long]:
        """Return the different values in order, and for each value its place in them."""
        ordered = np.sort(values)
        distinct = ordered[first_of_each(ordered)]
        if len(distinct) and distinct[-1] >= len(self._places):
            self._places = np.zeros(2 * int(distinct[-1]), np.int64)
        # What is left of other calls is never read: only places that were just written are.
        self._places[distinct] = np.arange(len(distinct))
        return distinct, self._places[values]


class Lexicon:
    """Numbers runs of text and names; hold ``lock`` while numbers are in use."""

    def __init__(self, vectors: StaticVectors | None = None) -> None:
        self.lock = threading.Lock()
        self.vectors = vectors
        self.term_places = Renumbering()
        self.piece_places = Renumbering()
        self._forget()

    def _forget(self) -> None:
        self._runs: _Numbers[int] = _Numbers()
        self._names: _Numbers[str] = _Numbers()
        self._terms: dict[str, int] = {}
        self._keys = Column(np.uint64)
        self._telling = Column(np.bool_)
        self._run_terms = Ragged(np.int32)
        self._run_pieces = Ragged(np.int32)
        self._name_keys = Column(np.uint64, 3)
        self._name_parts = Ragged(np.uint64)

    def trim(self) -> None:
        """Forget everything once it is much, so that memory stays bounded."""
        if len(self._runs) + len(self._names) > _MOST_RUNS:
            self._forget()

    def runs(self, words: ScannedWords) -> Long:
        """Return the numbers of words as this lexicon knows them."""
        known = self._runs
        before = len(known)
        numbers = np.fromiter(map(known.__getitem__, words.numbers.tolist()), np.int64, len(words))
        if known.new:
            met = np.flatnonzero(numbers >= before)[::-1]
            first = np.empty(len(known.new), np.int64)
            first[numbers[met] - before] = met
            self._learn_runs(words.texts(first))
            known.new.clear()
        return numbers

    def names(self, names: Sequence[str]) -> Long:
        """Return the numbers of names of definitions."""
        known = self._names
        numbers = np.fromiter(map(known.__getitem__, names), np.int64, len(names))
        if known.new:
            self._learn_names(known.new)
            known.new.clear()
        return numbers

    def terms(self, runs: Long) -> tuple[Long, Long]:
        """Return the terms of runs, one after another, and how many each has."""
        return self._run_terms.take(runs)

    def term_keys(self, terms: Long) -> Keys:
        """Return the keys of terms."""
        keys: Keys = self._keys.values[terms]
        return keys

    def pieces(self, runs: Long) -> tuple[Long, Long]:
        """Return the pieces of runs, one after another, and how many each has."""
        return self._run_pieces.take(runs)

    def telling(self, runs: Long) -> NDArray[np.bool_]:
        """Tell which runs say something about the meaning of a text."""
        telling: NDArray[np.bool_] = self._telling.values[runs]
        return telling

    def name_keys(self, names: Long) -> Keys:
        """Return for each name: the key as written, in lower case, and of its whole term."""
        keys: Keys = self._name_keys.values[names]
        return keys

    def name_parts(self, names: Long) -> tuple[Keys, Long]:
        """Return the keys of the parts of names, and how many each has."""
        return self._name_parts.take(names)

    def _learn_runs(self, runs: list[str]) -> None:
        split = [split_identifier(run) for run in runs]
        terms = [terms_of_parts(run, parts) for run, parts in zip(runs, split, strict=True)]
        known = self._terms
        before = len(known)
        flat = [known.setdefault(term, len(known)) for group in terms for term in group]
        self._keys.extend(term_keys(_last(known, len(known) - before)))
        self._run_terms.extend(_sizes(terms), np.array(flat, np.int32))
        self._telling.extend(np.fromiter(map(len, runs), np.int64, len(runs)) > _SILENT)
        if self.vectors is not None:
            pieces_of = self.vectors.pieces_of
            groups = [pieces_of(run, parts) for run, parts in zip(runs, split, strict=True)]
            self._run_pieces.extend(_sizes(groups), np.array(_flat(groups), np.int32))

    def _learn_names(self, names: list[str]) -> None:
        split = [split_identifier(name)[:_MOST_PARTS] for name in names]
        parts = [[stem(part) for part in group] for group in split]
        wholes = [stem("".join(group)) for group in split]
        written = (term_keys(names), term_keys([name.lower() for name in names]), term_keys(wholes))
        self._name_keys.extend(np.stack(written, axis=1))
        flat = _flat(parts)
        self._name_parts.extend(
            _sizes(parts), np.fromiter(map(term_key, flat), np.uint64, len(flat))
        )


def _flat(groups: Iterable[Iterable[_Item]]) -> list[_Item]:
    return [item for group in groups for item in group]


def _last(known: dict[str, int], count: int) -> list[str]:
    """Return the keys that came last, in order; a dictionary can only be read from its ends."""
    backwards = reversed(known)
    return [next(backwards) for _ in range(count)][::-1]


def _sizes(groups: Sequence[Sequence[object]]) -> Long:
    return np.fromiter(map(len, groups), np.int64, len(groups))


@lru_cache(maxsize=2)
def shared_lexicon(vectors: StaticVectors | None) -> Lexicon:
    """Return this process's lexicon for one set of vectors."""
    return Lexicon(vectors)


_MOST = 65_535
_MOST_TERMS = 60_000
"""Different terms counted in one file, so that a position fits two bytes."""
_MOST_CELLS = 2_000_000
"""Cells of one dense table: bounds the memory that a large file takes."""
_AT_ONCE = 32
"""Chunks whose meaning is worked out at once: they share words, and the whole file does not."""
_FINE = 1024.0
"""Weights are whole numbers of this part, so that their sum is the same in every order."""


class TermCounter:
    """Counts words in rows; the lexicon must not forget meanwhile."""

    def __init__(self, lexicon: Lexicon, words: ScannedWords) -> None:
        self._lexicon = lexicon
        keys = words.rows << 32 | lexicon.runs(words)
        keys.sort()
        first = first_of_each(keys)
        self._times = _gaps(first, len(keys))
        self._row, self._run = keys[first] >> 32, keys[first] & 0xFFFFFFFF

    def terms(self, rows: int, names: Keys) -> tuple[Keys, Counts]:
        """Return all terms of the first rows, names included, and the counts of each row."""
        end = int(np.searchsorted(self._row, rows))
        numbers_of_terms, sizes = self._lexicon.terms(self._run[:end])
        numbers, place = self._lexicon.term_places.of(numbers_of_terms)
        keys = self._lexicon.term_keys(numbers)
        terms = np.sort(np.concatenate([keys, names]))
        terms = terms[first_of_each(terms)][:_MOST_TERMS]
        width = len(terms) + 1
        position = np.searchsorted(terms, keys)[place]
        cells = np.repeat(self._row[:end] * width, sizes) + position
        cells, times = _summed(cells, np.repeat(self._times[:end], sizes), width * rows)
        row, position = np.divmod(cells, width)
        if len(terms) == _MOST_TERMS:
            inside = position < len(terms)
            row, position, times = row[inside], position[inside], times[inside]
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
