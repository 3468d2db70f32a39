"""Define what the index stores of a file: spans, definitions and counted terms, no text.

An analysis depends on the content and the language alone, not on the path: a file that is moved
keeps it. Terms and names are kept as 64-bit keys; chunks and fields refer to terms by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.definitions import Named, Span
from evercontext.retrieval.postings import Ints
from evercontext.retrieval.term_keys import Keys
from evercontext.retrieval.vectors import ByteVector

FIELDS = ("types", "functions", "others", "header")
KINDS = (None, "type", "function", "other", "impl")
KIND_NUMBER = {kind: i for i, kind in enumerate(KINDS)}
TYPE, FUNCTION = KIND_NUMBER["type"], KIND_NUMBER["function"]
_LETTERS = {"type": "t", "function": "f", "other": "o", "impl": "i"}
_KIND_OF = {letter: kind for kind, letter in _LETTERS.items()}
_LONGEST_NAMES = 8_000
Bytes = NDArray[np.uint8]
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


@dataclass(frozen=True, slots=True)
class Names:
    """The short names of definitions, each once, as keys."""

    defined: int
    """So many are defined here; the others are only shown by a chunk."""
    keys: Keys
    """For each name: as written, in lower case, and of its whole term."""
    part_sizes: Bytes
    parts: Keys
    """The keys of the names' parts, one after another."""
    text: str
    """The defined names as written, for those who want to know what they mean."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of a content, in order."""

    lines: Ints
    """First and last line of each, from 1."""
    names: Ints
    """Which name each shows; -1: none."""
    kinds: Bytes
    """What kind of definition it shows: a place in ``KINDS``."""
    symbol_sizes: Short
    symbols: bytes
    """The names of each chunk's definitions, as ``read_names`` reads them, one after another."""

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything ranking needs to know of one content."""

    language: str
    lines: int
    chunks: Chunks
    names: Names
    terms: Keys
    """In ascending order."""
    counts: Counts
    """One row per chunk, then one per field of ``FIELDS``."""
    vectors: ByteVector | None = None
    """One row per chunk, then one for the names together."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The chunks as they were cut."""
        ends = list(accumulate(self.chunks.symbol_sizes.tolist(), initial=0))
        rows = zip(self.chunks.lines.tolist(), ends[:-1], ends[1:], strict=True)
        return tuple(
            Span(span[0], span[1], read_names(self.chunks.symbols[a:b].decode("utf-8")))
            for span, a, b in rows
        )


def written_names(names: Sequence[Named]) -> str:
    """Return names as one text: a line each, after its kind, in capitals if it began before."""
    lines = [
        f"{_LETTERS[named.kind] if named.begins else _LETTERS[named.kind].upper()}{named.name}"
        for named in names
        if "\n" not in named.name
    ]
    # The size of the text is kept in 16 bits.
    while sum(map(len, lines)) > _LONGEST_NAMES:
        lines.pop()
    return "\n".join(lines)


def read_names(text: str) -> tuple[Named, ...]:
    """Return the names that were written as one text."""
    return tuple(
        Named(line[1:], _KIND_OF[line[0].lower()], line[0].islower())
        for line in text.split("\n")
        if line
    )


def pack(analysis: Analysis) -> bytes:
    """Return the analysis as bytes; equal analyses give equal bytes."""
    chunks, names, counts = analysis.chunks, analysis.names, analysis.counts
    language = analysis.language.encode()
    named = names.text.encode("utf-8", "replace")
    dimensions = 0 if analysis.vectors is None else analysis.vectors.shape[1]
    head = (
        analysis.lines,
        len(chunks),
        len(names.keys),
        names.defined,
        len(names.parts),
        len(analysis.terms),
        len(counts.positions),
        dimensions,
        len(chunks.symbols),
        len(named),
        len(language),
    )
    return b"".join(
        (
            np.array(head, "<u4").tobytes(),
            analysis.terms.astype("<u8").tobytes(),
            names.keys.astype("<u8").tobytes(),
            names.parts.astype("<u8").tobytes(),
            chunks.lines.astype("<i4").tobytes(),
            chunks.names.astype("<i4").tobytes(),
            counts.offsets.astype("<i4").tobytes(),
            counts.positions.astype("<u2").tobytes(),
            counts.counts.astype("<u2").tobytes(),
            chunks.symbol_sizes.astype("<u2").tobytes(),
            chunks.kinds.tobytes(),
            names.part_sizes.tobytes(),
            chunks.symbols,
            named,
            language,
            b"" if analysis.vectors is None else analysis.vectors.tobytes(),
        )
    )


_HEAD = 11


class _Tape:
    """Reads arrays one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def next(self, dtype: str, count: int) -> NDArray[Any]:
        part: NDArray[Any] = np.frombuffer(self._data, dtype, count, self._at)
        self._at += part.nbytes
        return part

    def text(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def unpack(data: bytes) -> Analysis:
    """Return the analysis that was packed."""
    tape = _Tape(data)
    lines, spans, all_names, defined, parts, terms, entries, width, *texts = tape.next(
        "<u4", _HEAD
    ).tolist()
    keys = tape.next("<u8", terms)
    name_keys = tape.next("<u8", 3 * all_names).reshape(-1, 3)
    part_keys = tape.next("<u8", parts)
    places = tape.next("<i4", 2 * spans).reshape(-1, 2)
    shown = tape.next("<i4", spans)
    counts = Counts(
        tape.next("<i4", spans + len(FIELDS) + 1),
        tape.next("<u2", entries),
        tape.next("<u2", entries),
    )
    sizes, kinds = tape.next("<u2", spans), tape.next("<u1", spans)
    part_sizes = tape.next("<u1", all_names)
    symbols, named, language = (tape.text(size) for size in texts)
    chunks = Chunks(places, shown, kinds, sizes, symbols)
    names = Names(defined, name_keys, part_sizes, part_keys, named.decode())
    rows = tape.next("<i1", (spans + 1) * width).reshape(-1, width) if width else None
    return Analysis(language.decode(), lines, chunks, names, keys, counts, rows)
