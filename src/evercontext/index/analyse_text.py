"""Analyse a text: cut it into chunks, and count the terms of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from evercontext.index.analysis import FIELDS, KIND_NUMBER, Analysis, Chunks, Names, written_names
from evercontext.index.chunker import cut, find_definitions
from evercontext.index.definitions import Definition, Span, short_name
from evercontext.index.source_terms import (
    Lexicon,
    ScannedWords,
    TermCounter,
    line_starts,
    scan,
    shared_lexicon,
)
from evercontext.retrieval.static_vectors import StaticVectors
from evercontext.retrieval.terms import fold

_FIELD_OF_KIND = {"type": "types", "function": "functions", "other": "others"}
_COMMENT = re.compile(r"\s*(#|//+|/\*+|\*+|--+|;+|%+|\{-|\"\"\"|'''|=begin|@moduledoc|!)")
_LEGAL = re.compile(r"copyright|licen[sc]e|warrant|spdx|all rights|frozen_string_literal", re.I)
_HEADER_LINES = 40
_HEADER_KEPT = 25


def analyse(text: str, language: str, vectors: StaticVectors | None = None) -> Analysis:
    """Cut and count one text."""
    text = fold(text)
    lines = text.split("\n")
    definitions = find_definitions(text, language)
    spans = cut(lines, language, definitions)
    names = list(dict.fromkeys(d.short_name for d in definitions if d.kind != "impl"))
    defined = len(names)
    place = {name: i for i, name in enumerate(names)}
    shown = [place.setdefault(short_name(s.symbol), len(place)) if s.symbol else -1 for s in spans]
    words = _scan(text, len(lines), spans, _field_texts(definitions, lines), names)
    lexicon = shared_lexicon(vectors)
    with lexicon.lock:
        lexicon.trim()
        tally = TermCounter(lexicon, words)
        known = _names(lexicon, list(place), defined)
        rows = len(spans) + len(FIELDS)
        terms, counts = tally.terms(rows, known.keys[:defined, 2])
        meaning = tally.meaning(len(spans), names=rows) if vectors else None
    return Analysis(language, len(lines), _chunks(spans, shown), known, terms, counts, meaning)


def _scan(
    text: str, lines: int, spans: Sequence[Span], fields: Sequence[str], names: Sequence[str]
) -> ScannedWords:
    """Return the words of a text by chunk, then by field, and in the last row those of names."""
    rows = (*fields, "\n".join(names))
    data = "\n".join(("", text, *rows, "")).encode("utf-8", "surrogatepass")
    first = [span.start for span in spans]
    first += accumulate((row.count("\n") + 1 for row in rows[:-1]), initial=lines + 1)
    return scan(data, line_starts(data)[np.array(first) - 1])


def _field_texts(definitions: Sequence[Definition], lines: Sequence[str]) -> list[str]:
    texts: dict[str, list[str]] = {field: [] for field in FIELDS}
    for definition in definitions:
        if definition.kind in _FIELD_OF_KIND:
            texts[_FIELD_OF_KIND[definition.kind]].append(definition.name)
    texts["header"] = header(lines)
    return ["\n".join(texts[field]) for field in FIELDS]


def _names(lexicon: Lexicon, names: Sequence[str], defined: int) -> Names:
    numbers = lexicon.names(names)
    parts, sizes = lexicon.name_parts(numbers)
    return Names(
        defined,
        lexicon.name_keys(numbers),
        sizes.astype(np.uint8),
        parts,
        " ".join(names[:defined]),
    )


def _chunks(spans: Sequence[Span], shown: Sequence[int]) -> Chunks:
    symbols = [written_names(s.names).encode("utf-8", "replace") for s in spans]
    return Chunks(
        np.array([(s.start, s.end) for s in spans], np.int32).reshape(-1, 2),
        np.array(shown, np.int32),
        np.array([KIND_NUMBER[s.kind] for s in spans], np.uint8),
        np.array([len(symbol) for symbol in symbols], np.uint16),
        b"".join(symbols),
    )


def header(lines: Sequence[str]) -> list[str]:
    """Return the words a file says about itself at its top, without legal text."""
    comments: list[str] = []
    inside = False
    for line in lines[:_HEADER_LINES]:
        quotes = line.count('"""') + line.count("'''")
        if inside or _COMMENT.match(line):
            if not _LEGAL.search(line):
                comments.append(line)
        elif comments and line.strip():
            break
        if quotes % 2:
            inside = not inside
        if "/*" in line and "*/" not in line:
            inside = True
        elif "*/" in line:
            inside = False
    return comments[:_HEADER_KEPT]
