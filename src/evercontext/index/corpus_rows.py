"""Turn the analyses of files into rows of the corpus, all files at once.

One changed file and a whole tree go the same way; with a whole tree, numpy does in a few steps
what would otherwise be done file by file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.analysis import FIELDS, Analysis
from evercontext.index.path_features import PathFacts, facts_of
from evercontext.retrieval.postings import Floats, Ints
from evercontext.retrieval.ragged import Long
from evercontext.retrieval.term_keys import Keys, term_key
from evercontext.retrieval.vectors import BYTE_SCALE, VectorSpace, normalise

PATH_FIELDS = ("stem", "directory", "parent")
SLOTS = 8
"""Fields per file in the field postings, the body last."""
FIELD, FILE = 7, 3
"""What to mask for the field of such a posting, and how far to shift for its file."""
PRIORS = (
    "size",
    "definitions",
    "depth",
    "test",
    "example",
    "compat",
    "generated",
    "reexport",
    "underscore",
    "prose",
    "data",
    "stem_words",
)
"""What is known of a file before any question."""
Posts = tuple[Ints, Ints, NDArray[Any]]
_Grouped = tuple[Keys, Long, Long, Long]
"""Terms of paths: key, file, field, how often."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The block's keys as numbers of the corpus."""

    terms: Ints
    paths: Ints
    names: Ints
    parts: Ints


@dataclass(frozen=True, slots=True)
class CorpusRows:
    """Some files, end to end."""

    paths: list[str]
    priors: Floats
    cards: Floats
    chunk_counts: Long
    chunk_file: Long
    chunk_lines: Ints
    chunk_names: Ints
    chunk_kinds: NDArray[np.uint8]
    symbol_sizes: NDArray[np.uint16]
    symbol_texts: list[bytes]
    vectors: NDArray[np.int8]
    name_counts: Long
    defined: Long
    name_keys: Keys
    part_sizes: NDArray[np.uint8]
    part_keys: Keys
    term_keys: Keys
    term_file: Long
    entry_term: Long
    """For each counted entry: its place in ``term_keys``."""
    entry_row: Long
    """For each counted entry: its row, chunks and fields of a file after one another."""
    entry_count: NDArray[np.uint16]
    row_file: Long
    row_number: Long
    """For each row: its number within its file."""
    lengths: Floats
    path_terms: _Grouped

    def all_keys(self) -> Keys:
        """Return every key that is a term."""
        return np.concatenate(
            [self.term_keys, self.path_terms[0], self.name_keys[:, 2], self.part_keys]
        )

    def numbered(self, ids: Callable[[Keys], Ints]) -> Numbers:
        """Return the numbers of all keys."""
        numbers = ids(self.all_keys())
        a = len(self.term_keys)
        b = a + len(self.path_terms[0])
        c = b + len(self.name_keys)
        return Numbers(numbers[:a], numbers[a:b], numbers[b:c], numbers[c:])

    def rows(self, numbers: Numbers, files: int, chunks: int, names: int) -> dict[str, Any]:
        """Return the rows of the plain columns, given how many rows there are already."""
        first_name = names + np.cumsum(self.name_counts) - self.name_counts
        shown = self.chunk_names + first_name[self.chunk_file]
        return {
            "alive": np.ones(len(self.paths), np.bool_),
            "lengths": self.lengths,
            "priors": self.priors,
            "first_chunk": chunks + np.cumsum(self.chunk_counts) - self.chunk_counts,
            "chunk_count": self.chunk_counts,
            "first_name": first_name,
            "defined": self.defined,
            "cards": self.cards,
            "chunk_file": files + self.chunk_file,
            "chunk_lines": self.chunk_lines,
            "chunk_name": np.where(self.chunk_names < 0, -1, shown),
            "chunk_kind": self.chunk_kinds,
            "chunk_length": self._row_lengths()[self._is_chunk()],
            "chunk_vectors": self.vectors,
            "symbol_size": self.symbol_sizes,
            "name_written": self.name_keys[:, 0],
            "name_term": numbers.names,
            "part_count": self.part_sizes,
        }

    def _is_chunk(self) -> NDArray[np.bool_]:
        is_chunk: NDArray[np.bool_] = self.row_number < self.chunk_counts[self.row_file]
        return is_chunk

    def _row_lengths(self) -> NDArray[Any]:
        return np.bincount(self.entry_row, self.entry_count, len(self.row_file))

    def file_terms(self, numbers: Numbers) -> tuple[Ints, Long]:
        """Return each file's terms, each once, and how many they are."""
        file = np.concatenate([self.term_file, self.path_terms[1]])
        pairs = np.unique(file << 32 | np.concatenate([numbers.terms, numbers.paths]))
        sizes = np.bincount(pairs >> 32, minlength=len(self.paths))
        return (pairs & 0xFFFFFFFF).astype(np.int32), sizes

    def _is_defined(self) -> tuple[NDArray[np.bool_], Long]:
        file = np.repeat(np.arange(len(self.paths)), self.name_counts)
        first = np.cumsum(self.name_counts) - self.name_counts
        return np.arange(len(file)) - first[file] < self.defined[file], file

    def defined_terms(self, numbers: Numbers) -> Ints:
        """Return the whole terms of defined names, once for each file."""
        is_defined, file = self._is_defined()
        pairs = np.unique(file[is_defined] << 32 | numbers.names[is_defined])
        return (pairs & 0xFFFFFFFF).astype(np.int32)

    def symbols(self, files: int) -> tuple[Keys, Ints]:
        """Return the lower-case keys of defined names, in order, and whose they are, each once."""
        is_defined, file = self._is_defined()
        lower, file = self.name_keys[is_defined, 1], file[is_defined]
        order = np.lexsort((file, lower))
        lower, file = lower[order], file[order]
        new = np.ones(len(file), np.bool_)
        new[1:] = (lower[1:] != lower[:-1]) | (file[1:] != file[:-1])
        return lower[new], (files + file[new]).astype(np.int32)

    def body_postings(self, numbers: Numbers, chunks: int) -> Posts:
        """Return (term, chunk, how often) of the texts."""
        is_chunk = self._is_chunk()
        place = np.cumsum(is_chunk) - 1
        in_chunk = is_chunk[self.entry_row]
        documents = (chunks + place[self.entry_row[in_chunk]]).astype(np.int32)
        return numbers.terms[self.entry_term[in_chunk]], documents, self.entry_count[in_chunk]

    def field_postings(self, numbers: Numbers, files: int) -> Posts:
        """Return (term, file and field, how often) of names, headers and paths."""
        in_field = ~self._is_chunk()[self.entry_row]
        row = self.entry_row[in_field]
        file = self.row_file[row]
        field = self.row_number[row] - self.chunk_counts[file] + len(PATH_FIELDS)
        _, path_file, path_field, path_count = self.path_terms
        return (
            np.concatenate([numbers.terms[self.entry_term[in_field]], numbers.paths]),
            np.concatenate(
                [(files + file) * SLOTS + field, (files + path_file) * SLOTS + path_field]
            ).astype(np.int32),
            np.concatenate([self.entry_count[in_field], path_count.astype(np.uint16)]),
        )


def collect(files: Iterable[tuple[str, Analysis]], vectors: VectorSpace | None) -> CorpusRows:
    """Lay files end to end."""
    paths: list[str] = []
    analyses: list[Analysis] = []
    for path, analysis in files:
        paths.append(path)
        analyses.append(analysis)
    facts = [facts_of(path) for path in paths]
    chunk_counts = _array(len(a.chunks) for a in analyses)
    row_counts = chunk_counts + len(FIELDS)
    row_file = np.repeat(np.arange(len(analyses)), row_counts)
    row_number = np.arange(len(row_file)) - np.repeat(
        np.cumsum(row_counts) - row_counts, row_counts
    )
    row_sizes = _joined([np.diff(a.counts.offsets) for a in analyses], np.int64)
    entry_row = np.repeat(np.arange(len(row_file)), row_sizes)
    term_counts = _array(len(a.terms) for a in analyses)
    first_term = np.cumsum(term_counts) - term_counts
    positions = _joined([a.counts.positions for a in analyses], np.int64)
    counts = _joined([a.counts.counts for a in analyses], np.uint16)
    name_counts = _array(len(a.names.keys) for a in analyses)
    path_terms = _path_terms(facts)
    row_lengths = np.bincount(entry_row, counts, len(row_file))
    return CorpusRows(
        paths=paths,
        priors=_priors(facts, analyses),
        cards=_cards(facts, analyses, vectors),
        chunk_counts=chunk_counts,
        chunk_file=np.repeat(np.arange(len(analyses)), chunk_counts),
        chunk_lines=_joined([a.chunks.lines for a in analyses], np.int32).reshape(-1, 2),
        chunk_names=_joined([a.chunks.names for a in analyses], np.int32),
        chunk_kinds=_joined([a.chunks.kinds for a in analyses], np.uint8),
        symbol_sizes=_joined([a.chunks.symbol_sizes for a in analyses], np.uint16),
        symbol_texts=[a.chunks.symbols for a in analyses],
        vectors=_chunk_vectors(analyses, vectors),
        name_counts=name_counts,
        defined=_array(a.names.defined for a in analyses),
        name_keys=_joined([a.names.keys for a in analyses], np.uint64).reshape(-1, 3),
        part_sizes=_joined([a.names.part_sizes for a in analyses], np.uint8),
        part_keys=_joined([a.names.parts for a in analyses], np.uint64),
        term_keys=_joined([a.terms for a in analyses], np.uint64),
        term_file=np.repeat(np.arange(len(analyses)), term_counts),
        entry_term=positions + first_term[row_file[entry_row]],
        entry_row=entry_row,
        entry_count=counts,
        row_file=row_file,
        row_number=row_number,
        lengths=_lengths(row_lengths, row_file, row_number - chunk_counts[row_file], facts),
        path_terms=path_terms,
    )


def _array(values: Iterable[int]) -> Long:
    return np.array(list(values), np.int64)


def _joined(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype)


def _path_terms(facts: Sequence[PathFacts]) -> _Grouped:
    rows = [
        (term_key(term), file, field, times)
        for file, fact in enumerate(facts)
        for field, terms in enumerate(
            (fact.stem_terms, fact.directory_terms, fact.words.parent_terms)
        )
        for term, times in Counter(terms).items()
    ]
    key, file, field, times = zip(*rows, strict=True) if rows else ((), (), (), ())
    return np.array(key, np.uint64), _array(file), _array(field), _array(times)


def _lengths(
    row_lengths: NDArray[Any], row_file: Long, field: Long, facts: Sequence[PathFacts]
) -> Floats:
    """Return the tokens per file and field; rows before field 0 are chunks."""
    column = np.where(field < 0, SLOTS - 1, field + len(PATH_FIELDS))
    table = np.bincount(row_file * SLOTS + column, row_lengths, len(facts) * SLOTS)
    out = table.reshape(-1, SLOTS).astype(np.float32)
    for i, fact in enumerate(facts):
        out[i, : len(PATH_FIELDS)] = (
            len(fact.stem_terms),
            len(fact.directory_terms),
            len(fact.words.parent_terms),
        )
    return out


def _priors(facts: Sequence[PathFacts], analyses: Sequence[Analysis]) -> Floats:
    rows = [
        (
            np.log1p(a.lines),
            np.log1p(a.names.defined),
            fact.depth,
            fact.test,
            fact.example,
            fact.compat,
            fact.generated,
            fact.reexport,
            fact.underscore,
            fact.prose,
            fact.data,
            len(fact.words.stem_words),
        )
        for fact, a in zip(facts, analyses, strict=True)
    ]
    return np.array(rows, np.float32).reshape(-1, len(PRIORS))


def _fits(analysis: Analysis, vectors: VectorSpace) -> bool:
    return analysis.vectors is not None and analysis.vectors.shape[1] == vectors.dimensions


def _chunk_vectors(analyses: Sequence[Analysis], vectors: VectorSpace | None) -> NDArray[np.int8]:
    if vectors is None:
        return np.zeros((sum(len(a.chunks) for a in analyses), 0), np.int8)
    parts = [
        a.vectors[:-1]
        if a.vectors is not None and _fits(a, vectors)
        else np.zeros((len(a.chunks), vectors.dimensions), np.int8)
        for a in analyses
    ]
    return _joined(parts, np.int8).reshape(-1, vectors.dimensions)


def _cards(
    facts: Sequence[PathFacts], analyses: Sequence[Analysis], vectors: VectorSpace | None
) -> Floats:
    """Return the meaning of each file's path and of the names it defines."""
    if vectors is None:
        return np.zeros((len(analyses), 0), np.float32)
    out = np.zeros((len(analyses), vectors.dimensions), np.float32)
    for i, (fact, analysis) in enumerate(zip(facts, analyses, strict=True)):
        words: dict[str, float] = {}
        for word in fact.words.stem_words:
            words[word] = words.get(word, 0.0) + 3.0
        for word in fact.words.parent_terms:
            words[word] = words.get(word, 0.0) + 1.0
        out[i] = vectors.pool(words)
        if analysis.vectors is not None and _fits(analysis, vectors):
            out[i] += analysis.vectors[-1].astype(np.float32) / BYTE_SCALE
    return normalise(out)
