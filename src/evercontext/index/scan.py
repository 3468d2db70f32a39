"""Find the words of a text all at once, each with a number that is the same wherever it stands.

Cutting a text into strings, only to look each up among those met before, costs more than all the
counting after it. Here numpy finds where words begin and end and works out a number from their
bytes; a string is made of those alone that were never met. The numbers never leave the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.ragged import Long
from evercontext.retrieval.tokens import runs

Keys = NDArray[np.uint64]
_BLOCK = 1 << 17
"""Bytes that are worked on at once: bounds the memory, and stays near the processor."""
_FACTOR = 0x9E3779B97F4A7C15
_INVERSE = pow(_FACTOR, -1, 1 << 64)
_ASCII = 128
_IN_WORD = bytes(b >= _ASCII or chr(b).isalnum() or chr(b) == "_" for b in range(256))
"""For each byte: 1 if it is part of a word."""
_NEWLINE = ord("\n")


@dataclass(frozen=True, slots=True)
class Scan:
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


def scan(data: bytes, bounds: Long) -> Scan:
    """Return the words of folded text, in rows that begin at ``bounds``.

    The data must begin and end with a newline.
    """
    found = [_scan_block(data, first, last) for first, last in _blocks(data)]
    starts, ends, numbers = (np.concatenate(part) for part in zip(*found, strict=True))
    rows = np.searchsorted(bounds, starts, side="right") - 1
    words = Scan(data, starts, ends, rows, numbers)
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


def _with_wide_words(words: Scan) -> Scan:
    """Cut again what holds more than ASCII: only the letters tell words from punctuation there."""
    wide = np.cumsum(np.frombuffer(words.data, np.uint8) >= _ASCII)
    has_wide = wide[words.ends - 1] > wide[words.starts - 1]
    parts = [runs(text) for text in words.texts(np.flatnonzero(has_wide))]
    texts = "\n".join(["", *(text for part in parts for text in part), ""])
    more = texts.encode("utf-8", "surrogatepass")
    starts, ends, numbers = _scan_block(more, 0, len(more) - 1)
    rows = np.repeat(words.rows[has_wide], [len(part) for part in parts])
    plain, size = ~has_wide, len(words.data)
    return Scan(
        words.data + more,
        np.concatenate([words.starts[plain], starts + size]),
        np.concatenate([words.ends[plain], ends + size]),
        np.concatenate([words.rows[plain], rows]),
        np.concatenate([words.numbers[plain], numbers]),
    )
