"""The index in memory: arrays over files and chunks, rebuilt from the table at any time.

Every update costs what the changed file costs, whatever the size of the tree: new rows are
appended, old ones marked dead, and frequencies corrected by the terms of that one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.index.analysis import FIELDS, SCALE, Analysis
from evercontext.index.paths import PathFacts, facts_of
from evercontext.retrieval.postings import Column, Floats, Ints, Postings
from evercontext.retrieval.tokens import split_identifier, stem, whole
from evercontext.retrieval.vectors import StaticVectors, normalise

PATH_FIELDS = ("stem", "directory", "parent")
_LAST_NAME = re.compile(r"[.:\\#]+")
SLOTS = 8
"""Fields per file in the field postings, the body last."""
PRIORS = (
    "size", "definitions", "depth", "test", "example", "compat", "generated", "reexport",
    "underscore", "prose", "data", "stem_words",
)  # fmt: skip


@dataclass(slots=True)
class FileEntry:
    """One file's place in the arrays."""

    path: str
    facts: PathFacts
    language: str
    spans: NDArray[np.int32]
    """First and last line of each chunk."""
    symbols: tuple[str | None, ...]
    types: frozenset[str]
    """Names of the classes, structs and interfaces that its chunks show."""
    names: tuple[str, ...]
    first_chunk: int
    term_ids: Ints
    name_ids: Ints
    """Term of each definition's whole name."""
    part_ids: Ints
    """Terms of the parts of all definition names, one after another."""
    part_sizes: Ints


class Corpus:
    """All files of one index, ready to be ranked."""

    def __init__(self, vectors: StaticVectors | None = None) -> None:
        dimensions = vectors.dimensions if vectors else 0
        self.vectors = vectors
        self.terms: dict[str, int] = {}
        self.files: list[FileEntry] = []
        self.at: dict[str, int] = {}
        self.symbols: dict[str, list[int]] = {}
        self.body = Postings()
        self.fields = Postings()
        self.live_files = 0
        self.live_chunks = 0
        self._alive = Column(np.bool_)
        self._frequency = Column(np.int32)
        self._definers = Column(np.int32)
        self._lengths = Column(np.float32, SLOTS)
        self._priors = Column(np.float32, len(PRIORS))
        self._chunk_file = Column(np.int32)
        self._chunk_length = Column(np.float32)
        self._chunk_vectors = Column(np.int8, dimensions)
        self._cards = Column(np.float32, dimensions)
        self._total_lengths = np.zeros(SLOTS, np.float64)
        self._pending: tuple[list[Any], list[Any]] | None = None

    @classmethod
    def build(
        cls, files: Iterable[tuple[str, Analysis]], vectors: StaticVectors | None = None
    ) -> Corpus:
        """Return a corpus of many files at once."""
        corpus = cls(vectors)
        with corpus.filling():
            for path, analysis in files:
                corpus.put(path, analysis)
        return corpus

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Take many files into an empty corpus, and sort their postings once at the end."""
        assert not self.files, "only an empty corpus is filled at once"
        body: list[Any] = []
        fields: list[Any] = []
        self._pending = (body, fields)
        yield
        self._pending = None
        self.body = _stack(body, len(self.terms))
        self.fields = _stack(fields, len(self.terms))

    def put(self, path: str, analysis: Analysis) -> None:
        """Add a file, or replace it."""
        self.remove(path)
        slot, first = len(self.files), len(self._chunk_file)
        facts, counts = facts_of(path), analysis.counts
        ids = self._ids(analysis.terms)
        chunks = len(analysis.spans)
        lengths = np.zeros((1, SLOTS), np.float32)
        for i, terms in enumerate((facts.stem_terms, facts.directory_terms, facts.parent_terms)):
            found, times = np.unique(self._ids(terms), return_counts=True)
            self._post(1, found, slot * SLOTS + i, times)
            lengths[0, i] = len(terms)
        for i in range(len(FIELDS)):
            row = counts.row(chunks + i)
            slot_id = slot * SLOTS + len(PATH_FIELDS) + i
            self._post(1, ids[counts.positions[row]], slot_id, counts.counts[row])
            lengths[0, len(PATH_FIELDS) + i] = counts.counts[row].sum()
        sizes = np.zeros(chunks, np.float32)
        for i in range(chunks):
            row = counts.row(i)
            self._post(0, ids[counts.positions[row]], first + i, counts.counts[row])
            sizes[i] = counts.counts[row].sum()
        lengths[0, -1] = sizes.sum()
        self._store(self._entry(path, facts, analysis, first, ids), analysis, lengths, sizes)

    def remove(self, path: str) -> bool:
        """Forget a file; False if it was not there."""
        slot = self.at.pop(path, None)
        if slot is None:
            return False
        entry = self.files[slot]
        self.alive[slot] = False
        self.frequency[entry.term_ids] -= 1
        self.definers[np.unique(entry.name_ids)] -= 1
        for name in {n.lower() for n in entry.names}:
            self.symbols[name].remove(slot)
        self._account(slot, -1)
        return True

    def _post(self, which: int, terms: Ints, document: int, counts: NDArray[Any]) -> None:
        if self._pending is not None:
            self._pending[which].append((terms, document, counts))
        else:
            postings = self.fields if which else self.body
            postings.add(document, terms.tolist(), counts.tolist())

    def _account(self, slot: int, sign: int) -> None:
        self._total_lengths += sign * self.lengths[slot]
        self.live_files += sign
        self.live_chunks += sign * len(self.files[slot].spans)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """For each file slot: still in the tree."""
        return self._alive.values

    @property
    def frequency(self) -> Ints:
        """For each term: in how many files."""
        return self._frequency.values

    @property
    def definers(self) -> Ints:
        """For each term: how many files define a name of it."""
        return self._definers.values

    @property
    def lengths(self) -> Floats:
        """Tokens per file and field; the last column is the body."""
        return self._lengths.values

    @property
    def priors(self) -> Floats:
        """What is known of each file before any question, in the order of ``PRIORS``."""
        return self._priors.values

    @property
    def chunk_file(self) -> Ints:
        """For each chunk: the slot of its file."""
        return self._chunk_file.values

    @property
    def chunk_length(self) -> Floats:
        """For each chunk: its tokens."""
        return self._chunk_length.values

    @property
    def chunk_vectors(self) -> NDArray[np.int8]:
        """For each chunk: its meaning, scaled."""
        return self._chunk_vectors.values

    @property
    def cards(self) -> Floats:
        """For each file: the meaning of its path and of the names it defines."""
        return self._cards.values

    @property
    def average_lengths(self) -> NDArray[np.float64]:
        """Mean tokens per field over the live files."""
        return np.maximum(self._total_lengths / max(1, self.live_files), 1.0)

    @property
    def average_chunk(self) -> float:
        """Mean tokens per live chunk."""
        return max(1.0, float(self._total_lengths[-1]) / max(1, self.live_chunks))

    def _ids(self, terms: Sequence[str]) -> Ints:
        known = self.terms
        ids = np.array([known.setdefault(term, len(known)) for term in terms], np.int32)
        missing = len(known) - len(self._frequency)
        if missing:
            zeros = np.zeros(missing, np.int32)
            self._frequency.extend(zeros)
            self._definers.extend(zeros)
        return ids

    def _store(self, entry: FileEntry, analysis: Analysis, lengths: Floats, sizes: Floats) -> None:
        slot = len(self.files)
        self.files.append(entry)
        self.at[entry.path] = slot
        self._alive.extend(np.ones(1, np.bool_))
        self._lengths.extend(lengths)
        self._priors.extend(_priors(entry, analysis))
        self._chunk_file.extend(np.full(len(sizes), slot, np.int32))
        self._chunk_length.extend(sizes)
        self._store_vectors(entry, analysis)
        self.frequency[entry.term_ids] += 1
        self.definers[np.unique(entry.name_ids)] += 1
        for name in {n.lower() for n in entry.names}:
            self.symbols.setdefault(name, []).append(slot)
        self._account(slot, 1)

    def _store_vectors(self, entry: FileEntry, analysis: Analysis) -> None:
        if self.vectors is None:
            return
        given = analysis.vectors
        if given is None or given.shape[1] != self.vectors.dimensions:
            given = np.zeros((len(analysis.spans) + 1, self.vectors.dimensions), np.int8)
        self._chunk_vectors.extend(given[:-1])
        words: dict[str, float] = {}
        for word in entry.facts.stem_words:
            words[word] = words.get(word, 0.0) + 3.0
        for word in entry.facts.parent_terms:
            words[word] = words.get(word, 0.0) + 1.0
        card = self.vectors.pool(words) + given[-1].astype(np.float32) / SCALE
        self._cards.extend(normalise(card)[None, :])

    def _entry(
        self, path: str, facts: PathFacts, analysis: Analysis, first: int, ids: Ints
    ) -> FileEntry:
        path_ids = self._ids([*facts.stem_terms, *facts.directory_terms, *facts.parent_terms])
        parts = [[stem(p) for p in split_identifier(name)] for name in analysis.names]
        return FileEntry(
            path=path,
            facts=facts,
            language=analysis.language,
            spans=np.array([(s.start, s.end) for s in analysis.spans], np.int32).reshape(-1, 2),
            symbols=tuple(s.symbol for s in analysis.spans),
            types=frozenset(
                _LAST_NAME.split(s.symbol)[-1]
                for s in analysis.spans
                if s.kind == "type" and s.symbol
            ),
            names=analysis.names,
            first_chunk=first,
            term_ids=np.unique(np.concatenate([ids, path_ids])),
            name_ids=self._ids([whole(name) for name in analysis.names]),
            part_ids=self._ids([part for group in parts for part in group]),
            part_sizes=np.array([len(p) for p in parts], np.int32),
        )


def _priors(entry: FileEntry, analysis: Analysis) -> Floats:
    facts = entry.facts
    row = (
        np.log1p(analysis.lines), np.log1p(len(analysis.names)), facts.depth, facts.test,
        facts.example, facts.compat, facts.generated, facts.reexport, facts.underscore,
        facts.prose, facts.data, len(facts.stem_words),
    )  # fmt: skip
    return np.array([row], np.float32)


def _stack(rows: list[tuple[Ints, int, NDArray[Any]]], size: int) -> Postings:
    if not rows:
        return Postings()
    terms = np.concatenate([row[0] for row in rows])
    documents = np.repeat(
        np.array([row[1] for row in rows], np.int32), [len(row[0]) for row in rows]
    )
    counts = np.concatenate([row[2] for row in rows]).astype(np.float32)
    return Postings.build(terms, documents, counts, size)
