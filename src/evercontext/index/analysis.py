"""What the index keeps of a file's content: spans, definitions and counted terms, never its text.

An analysis depends on the content and the language alone, not on the path: a file that is moved
keeps it. Terms are held once per file; chunks and fields refer to them by position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evercontext.index.chunker import Definition, Span, cut, find_definitions
from evercontext.retrieval.postings import Ints
from evercontext.retrieval.tokens import fold, runs, terms_of, whole
from evercontext.retrieval.vectors import StaticVectors, normalise

FIELDS = ("types", "functions", "others", "header")
_FIELD_OF_KIND = {"type": "types", "function": "functions", "other": "others"}
_COMMENT = re.compile(r"\s*(#|//+|/\*+|\*+|--+|;+|%+|\{-|\"\"\"|'''|=begin|@moduledoc|!)")
_LEGAL = re.compile(r"copyright|licen[sc]e|warrant|spdx|all rights|frozen_string_literal", re.I)
_HEADER_LINES = 40
_HEADER_KEPT = 25
_MOST = 65_535
_MOST_TERMS = 60_000
"""Different terms counted in one file, so that a position fits two bytes."""
_SILENT = 2
"""Runs of so few letters say nothing about what a chunk means."""
SCALE = 127
"""Vectors are kept as whole numbers of this size."""

Small = NDArray[np.int8]
Long = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of (position in the terms, how often): chunks, then fields."""

    offsets: Ints
    positions: NDArray[np.uint16]
    counts: NDArray[np.uint16]

    def row(self, i: int) -> slice:
        """Where row ``i`` lies in ``positions`` and ``counts``."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything ranking needs to know of one content."""

    language: str
    lines: int
    spans: tuple[Span, ...]
    names: tuple[str, ...]
    """Short names of the definitions, as written, each once."""
    terms: tuple[str, ...]
    counts: Counts
    """One row per span, then one per field of ``FIELDS``."""
    vectors: Small | None = None
    """One row per span, then one for the names together."""


def analyse(text: str, language: str, vectors: StaticVectors | None = None) -> Analysis:
    """Cut and count one text."""
    text = fold(text)
    lines = text.split("\n")
    definitions = find_definitions(text, language)
    spans = cut(lines, language, definitions)
    texts = ["\n".join(lines[span.start - 1 : span.end]) for span in spans]
    names = tuple(dict.fromkeys(d.short_name for d in definitions if d.kind != "impl"))
    table = _RunTable()
    for part in (*texts, *_field_texts(definitions, lines)):
        table.add(part)
    counts = table.counts()
    for name in names:
        table.name(name)
    return Analysis(
        language,
        len(lines),
        tuple(spans),
        names,
        tuple(table.terms),
        counts,
        None if vectors is None else table.vectors(vectors, len(spans), names),
    )


def _field_texts(definitions: Sequence[Definition], lines: Sequence[str]) -> list[str]:
    texts: dict[str, list[str]] = {field: [] for field in FIELDS}
    for definition in definitions:
        if definition.kind in _FIELD_OF_KIND:
            texts[_FIELD_OF_KIND[definition.kind]].append(definition.name)
    texts["header"] = header(lines)
    return ["\n".join(texts[field]) for field in FIELDS]


class _Numbers(dict[str, int]):
    """Gives every new key the next number."""

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self)
        return number


class _RunTable:
    """Numbers the runs of text row by row; numpy counts them once per file."""

    def __init__(self) -> None:
        self.terms = _Numbers()
        self._runs = _Numbers()
        self._tokens: list[int] = []
        self._sizes: list[int] = []
        self._counted: tuple[Long, Long, Long] | None = None

    def add(self, text: str) -> None:
        """Take one row."""
        before = len(self._tokens)
        self._tokens.extend(map(self._runs.__getitem__, runs(text)))
        self._sizes.append(len(self._tokens) - before)

    def name(self, name: str) -> None:
        """Make sure that a whole name is among the terms."""
        if len(self.terms) < _MOST_TERMS:
            self.terms.setdefault(whole(name), len(self.terms))

    def _counted_runs(self) -> tuple[Long, Long, Long]:
        """Return (row, run, times), ordered, each pair once."""
        if self._counted is None:
            rows = np.repeat(np.arange(len(self._sizes)), self._sizes)
            width = max(1, len(self._runs))
            keys = rows * width + np.array(self._tokens, np.int64)
            keys, times = np.unique(keys, return_counts=True)
            self._counted = (keys // width, keys % width, times)
        return self._counted

    def counts(self) -> Counts:
        """Return the terms of each row, each once, in order."""
        number, limit = self.terms.__getitem__, _MOST_TERMS
        groups = [terms_of(run) for run in self._runs]
        flat = np.array(
            [number(t) for group in groups if len(self.terms) < limit for t in group], np.int64
        )
        lengths = np.array([len(group) for group in groups], np.int64)
        starts = np.cumsum(lengths) - lengths
        row, run, times = self._counted_runs()
        kept = starts[run] + lengths[run] <= len(flat)
        row, run, times = row[kept], run[kept], times[kept]
        sizes = lengths[run]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        position = flat[np.repeat(starts[run], sizes) + within]
        size = max(1, len(self.terms))
        keys, inverse = np.unique(np.repeat(row, sizes) * size + position, return_inverse=True)
        total = np.bincount(inverse, weights=np.repeat(times, sizes), minlength=len(keys))
        offsets = np.searchsorted(keys, np.arange(len(self._sizes) + 1) * size)
        return Counts(
            offsets.astype(np.int32),
            (keys % size).astype(np.uint16),
            np.minimum(total, _MOST).astype(np.uint16),
        )

    def vectors(self, vectors: StaticVectors, spans: int, names: Sequence[str]) -> Small:
        """Return the meaning of the first ``spans`` rows and of the names."""
        with vectors.lock:
            places = vectors.rows(self._runs)
            name_places = vectors.rows(names)
            words = vectors.matrix()
        row, run, times = self._counted_runs()
        telling = np.array([len(word) > _SILENT for word in self._runs], np.bool_)[run]
        row, run, times = row[telling], run[telling], times[telling]
        weights = np.sqrt(times).astype(np.float32)
        starts = np.searchsorted(row, np.arange(spans + 1))
        out = np.zeros((spans + 1, vectors.dimensions), np.float32)
        for i in range(spans):
            part = slice(starts[i], starts[i + 1])
            out[i] = weights[part] @ words[places[run[part]]]
        out[spans] = words[name_places].sum(axis=0)
        return np.rint(normalise(out) * SCALE).astype(np.int8)


def header(lines: Sequence[str]) -> list[str]:
    """Return the words a file says about itself at its top, without legal text."""
    kept: list[str] = []
    inside = False
    for line in lines[:_HEADER_LINES]:
        quotes = line.count('"""') + line.count("'''")
        if inside or _COMMENT.match(line):
            if not _LEGAL.search(line):
                kept.append(line)
        elif kept and line.strip():
            break
        if quotes % 2:
            inside = not inside
        if "/*" in line and "*/" not in line:
            inside = True
        elif "*/" in line:
            inside = False
    return kept[:_HEADER_KEPT]


def pack(analysis: Analysis) -> bytes:
    """Return the analysis as bytes; equal analyses give equal bytes."""
    head = {
        "language": analysis.language,
        "lines": analysis.lines,
        "spans": [[s.start, s.end, s.symbol, s.kind] for s in analysis.spans],
        "names": analysis.names,
        "terms": " ".join(analysis.terms),
        "dimensions": 0 if analysis.vectors is None else analysis.vectors.shape[1],
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    counts = analysis.counts
    return b"".join(
        (
            len(text).to_bytes(4, "little"),
            text,
            len(counts.positions).to_bytes(4, "little"),
            counts.offsets.astype("<i4").tobytes(),
            counts.positions.astype("<u2").tobytes(),
            counts.counts.astype("<u2").tobytes(),
            b"" if analysis.vectors is None else analysis.vectors.tobytes(),
        )
    )


def unpack(data: bytes) -> Analysis:
    """Return the analysis that was packed."""
    size = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + size])
    at = 4 + size
    entries = int.from_bytes(data[at : at + 4], "little")
    rows = len(head["spans"]) + len(FIELDS) + 1
    at += 4
    offsets = np.frombuffer(data, "<i4", rows, at)
    positions = np.frombuffer(data, "<u2", entries, at + 4 * rows)
    counts = np.frombuffer(data, "<u2", entries, at + 4 * rows + 2 * entries)
    at += 4 * rows + 4 * entries
    dimensions = head["dimensions"]
    vectors = (
        np.frombuffer(data, np.int8, offset=at).reshape(-1, dimensions) if dimensions else None
    )
    return Analysis(
        head["language"],
        head["lines"],
        tuple(Span(*span) for span in head["spans"]),
        tuple(head["names"]),
        tuple(head["terms"].split(" ")) if head["terms"] else (),
        Counts(offsets, positions, counts),
        vectors,
    )
