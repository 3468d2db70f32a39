"""Hold the index in memory: flat arrays over files, chunks and names.

Every update costs what the changed file costs, whatever the size of the tree: new rows are
appended, old ones marked dead, and frequencies corrected by the terms of that one file. All of it
is flat numbers, so that a snapshot of it can be mapped from a file instead of being built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.analysis import Analysis, read_names
from evercontext.index.corpus_rows import PRIORS, SLOTS, CorpusRows, collect
from evercontext.index.definitions import Named
from evercontext.index.path_features import PathWords, words_of
from evercontext.retrieval.postings import Column, Floats, Ints, Postings
from evercontext.retrieval.ragged import Long
from evercontext.retrieval.term_keys import Keys, term_key, term_keys
from evercontext.retrieval.vectors import VectorSpace

_WIDE = -1
"""Stands for the dimensions of the vectors in use."""
COLUMNS: dict[str, tuple[type[np.generic], int | None]] = {
    # one row per file
    "alive": (np.bool_, None),
    "lengths": (np.float32, SLOTS),
    "priors": (np.float32, len(PRIORS)),
    "first_chunk": (np.int32, None),
    "chunk_count": (np.int32, None),
    "first_name": (np.int32, None),
    "defined": (np.int32, None),
    "first_term": (np.int64, None),
    "term_count": (np.int32, None),
    "path_start": (np.int64, None),
    "path_size": (np.int32, None),
    "cards": (np.float32, _WIDE),
    # one row per chunk
    "chunk_file": (np.int32, None),
    "chunk_lines": (np.int32, 2),
    "chunk_name": (np.int32, None),
    "chunk_kind": (np.uint8, None),
    "chunk_length": (np.float32, None),
    "chunk_vectors": (np.int8, _WIDE),
    "symbol_start": (np.int64, None),
    "symbol_size": (np.uint16, None),
    # one row per name of a file
    "name_written": (np.uint64, None),
    "name_term": (np.int32, None),
    "first_part": (np.int64, None),
    "part_count": (np.int32, None),
    # flat lists that the others point into
    "part_term": (np.int32, None),
    "file_term": (np.int32, None),
    "text": (np.uint8, None),
    # one row per term
    "frequency": (np.int32, None),
    "definers": (np.int32, None),
}


class Corpus:
    """All files of one index, ready to be ranked."""

    def __init__(self, vectors: VectorSpace | None = None) -> None:
        self.vectors = vectors
        dimensions = vectors.dimensions if vectors else 0
        self.columns = {
            name: Column(dtype, dimensions if width == _WIDE else width)
            for name, (dtype, width) in COLUMNS.items()
        }
        self.terms: Keys = np.zeros(0, np.uint64)
        """Keys of the terms that were there at first, in order; a term's number is its place."""
        self.symbols: Keys = np.zeros(0, np.uint64)
        """Lower-case keys of defined names, in order, and the files that define them."""
        self.symbol_files: Ints = np.zeros(0, np.int32)
        self.body = Postings()
        self.fields = Postings()
        self.live_files = 0
        self.live_chunks = 0
        self.total_lengths = np.zeros(SLOTS, np.float64)
        self._later_terms: dict[int, int] = {}
        self._later_symbols: dict[int, list[int]] = {}
        self._paths: list[str] = []
        self._at: dict[str, int] | None = None
        self._path_words: dict[int, PathWords] = {}

    @classmethod
    def build(
        cls, files: Iterable[tuple[str, Analysis]], vectors: VectorSpace | None = None
    ) -> Corpus:
        """Return a corpus of many files at once."""
        corpus = cls(vectors)
        corpus.fill(files)
        return corpus

    def fill(self, files: Iterable[tuple[str, Analysis]]) -> None:
        """Take many files into an empty corpus."""
        assert not self.file_count, "only an empty corpus is filled at once"
        block = collect(files, self.vectors)
        self.terms = np.unique(block.all_keys())
        self._grow_terms(len(self.terms))
        body, fields = self._append(block)
        self.body = Postings.build(*body, len(self.terms))
        self.fields = Postings.build(*fields, len(self.terms))
        self.symbols, self.symbol_files = block.symbols(0)

    def put(self, path: str, analysis: Analysis) -> None:
        """Add a file, or replace it."""
        self.remove(path)
        slot = self.file_count
        block = collect([(path, analysis)], self.vectors)
        for postings, rows in zip((self.body, self.fields), self._append(block), strict=True):
            postings.add_many(*rows)
        for key in block.symbols(0)[0].tolist():
            self._later_symbols.setdefault(key, []).append(slot)
        self._index_paths()[path] = slot

    def remove(self, path: str) -> bool:
        """Forget a file; False if it was not there."""
        slot = self._index_paths().pop(path, None)
        if slot is None:
            return False
        self.alive[slot] = False
        self.values("frequency")[self.terms_of(slot)] -= 1
        self.values("definers")[np.unique(self.names_of(slot))] -= 1
        self.total_lengths -= self.lengths[slot]
        self.live_files -= 1
        self.live_chunks -= int(self.values("chunk_count")[slot])
        return True

    def _append(self, block: CorpusRows) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
        """Take a block's rows; return what is to be posted of chunks and of fields."""
        files, chunks = self.file_count, len(self.columns["chunk_file"])
        names = len(self.columns["name_term"])
        numbers = block.numbered(self._ids)
        for name, values in block.rows(numbers, files, chunks, names).items():
            self.columns[name].extend(values)
        self._extend_text(block)
        own, sizes = block.file_terms(numbers)
        self.columns["first_term"].extend(_starts(len(self.columns["file_term"]), sizes))
        self.columns["term_count"].extend(sizes)
        self.columns["file_term"].extend(own)
        self.columns["first_part"].extend(_starts(len(self.columns["part_term"]), block.part_sizes))
        self.columns["part_term"].extend(numbers.parts)
        _add_one(self.values("frequency"), own)
        _add_one(self.values("definers"), block.defined_terms(numbers))
        self.live_files += len(block.paths)
        self.live_chunks += len(block.chunk_file)
        self.total_lengths += block.lengths.sum(axis=0, dtype=np.float64)
        self._paths += block.paths
        return block.body_postings(numbers, chunks), block.field_postings(numbers, files)

    def _extend_text(self, block: CorpusRows) -> None:
        paths = [path.encode("utf-8", "surrogateescape") for path in block.paths]
        start = len(self.columns["text"])
        sizes = np.array([len(path) for path in paths], np.int32)
        self.columns["path_start"].extend(_starts(start, sizes))
        self.columns["path_size"].extend(sizes)
        start += int(sizes.sum())
        self.columns["symbol_start"].extend(_starts(start, block.symbol_sizes))
        text = b"".join((*paths, *block.symbol_texts))
        self.columns["text"].extend(np.frombuffer(text, np.uint8))

    def _ids(self, keys: Keys) -> Ints:
        """Return the numbers of terms; new ones get the next."""
        ids = np.searchsorted(self.terms, keys)
        known = np.zeros(len(keys), np.bool_)
        if len(self.terms):
            known = self.terms[np.minimum(ids, len(self.terms) - 1)] == keys
        later, first = self._later_terms, len(self.terms)
        missing = np.flatnonzero(~known)
        ids[missing] = [later.setdefault(k, first + len(later)) for k in keys[missing].tolist()]
        self._grow_terms(first + len(later))
        return ids.astype(np.int32)

    def _grow_terms(self, size: int) -> None:
        zeros = np.zeros(size - len(self.columns["frequency"]), np.int32)
        self.columns["frequency"].extend(zeros)
        self.columns["definers"].extend(zeros)

    def term(self, term: str) -> int | None:
        """Return the number of a term, or ``None`` if no file ever had it."""
        return self.numbers([term])[0]

    def numbers(self, terms: Sequence[str]) -> list[int | None]:
        """Return the numbers of terms, each ``None`` if no file ever had it."""
        return self._numbers(np.array([term_key(term) for term in terms], np.uint64))

    def _numbers(self, terms: Keys) -> list[int | None]:
        keys = terms.tolist()
        later = self._later_terms.get
        if not len(self.terms):
            return [later(key) for key in keys]
        at = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        known = (self.terms[at] == terms).tolist()
        return [
            number if is_known else later(key)
            for number, is_known, key in zip(at.tolist(), known, keys, strict=True)
        ]

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return how many files hold each of many terms that are not asked for again."""
        held = self.values("frequency")
        numbers = self._numbers(term_keys(terms))
        return [0 if number is None else int(held[number]) for number in numbers]

    def definers_of(self, name: str) -> list[int]:
        """Return the files that define a name, whatever its case."""
        key = term_key(name.lower())
        a, b = np.searchsorted(self.symbols, np.array([key, key + 1], np.uint64)).tolist()
        slots = [*self.symbol_files[a:b].tolist(), *self._later_symbols.get(key, [])]
        return [slot for slot in slots if self.alive[slot]]

    def values(self, name: str) -> NDArray[Any]:
        """Return one column: a view, good until the next change."""
        return self.columns[name].values

    @property
    def file_count(self) -> int:
        """How many files there are and were."""
        return len(self.columns["alive"])

    @property
    def alive(self) -> NDArray[np.bool_]:
        """For each file slot: still in the tree."""
        return self.values("alive")

    @property
    def lengths(self) -> Floats:
        """Tokens per file and field; the last column is the body."""
        return self.values("lengths")

    @property
    def average_lengths(self) -> NDArray[np.float64]:
        """Mean tokens per field over the live files."""
        return np.maximum(self.total_lengths / max(1, self.live_files), 1.0)

    @property
    def average_chunk(self) -> float:
        """Mean tokens per live chunk."""
        return max(1.0, float(self.total_lengths[-1]) / max(1, self.live_chunks))

    def path(self, slot: int) -> str:
        """Return the path of a file."""
        if self._paths:
            return self._paths[slot]
        start, size = int(self.values("path_start")[slot]), int(self.values("path_size")[slot])
        return self.text(start, size)

    def path_words(self, slot: int) -> PathWords:
        """Return the words of a file's path."""
        known = self._path_words.get(slot)
        if known is None:
            known = self._path_words[slot] = words_of(self.path(slot))
        return known

    def paths(self) -> list[str]:
        """Return the paths of all slots, dead ones included."""
        if len(self._paths) < self.file_count:
            starts, sizes = self.values("path_start"), self.values("path_size")
            rows = zip(starts.tolist(), sizes.tolist(), strict=True)
            self._paths = [self.text(start, size) for start, size in rows]
        return self._paths

    def names_in(self, chunk: int) -> tuple[Named, ...]:
        """Return the definitions that begin in a chunk, else the one around it."""
        start = int(self.values("symbol_start")[chunk])
        return read_names(self.text(start, int(self.values("symbol_size")[chunk])))

    def text(self, start: int, size: int) -> str:
        """Return a piece of the texts that the columns point into."""
        encoded = self.values("text")[start : start + size].tobytes()
        return encoded.decode("utf-8", "surrogateescape")

    def terms_of(self, slot: int) -> Ints:
        """Return the terms of a file, each once."""
        start = int(self.values("first_term")[slot])
        terms: Ints = self.values("file_term")[start : start + self.values("term_count")[slot]]
        return terms

    def names_of(self, slot: int) -> Ints:
        """Return the whole terms of the names that a file defines."""
        start = int(self.values("first_name")[slot])
        names: Ints = self.values("name_term")[start : start + self.values("defined")[slot]]
        return names

    def _index_paths(self) -> dict[str, int]:
        if self._at is None:
            alive = self.alive.tolist()
            self._at = {path: i for i, path in enumerate(self.paths()) if alive[i]}
        return self._at


def _starts(first: int, sizes: NDArray[Any]) -> Long:
    starts: Long = np.cumsum(sizes, dtype=np.int64) - sizes + first
    return starts


def _add_one(counts: Ints, terms: Ints) -> None:
    """Add one for every mention of a term."""
    if len(terms) > len(counts) // 8:
        counts += np.bincount(terms, minlength=len(counts)).astype(np.int32)
    else:
        np.add.at(counts, terms, 1)
