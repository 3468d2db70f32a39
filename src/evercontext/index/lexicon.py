"""What is known of a word, worked out once per process: its terms, its pieces, its keys.

A tree repeats its words: numbering them once lets numpy do the counting of every file. Numbers
differ from process to process and never leave it; what is stored are keys, which do not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evercontext.index.scan import Scan
from evercontext.retrieval.postings import Column
from evercontext.retrieval.ragged import Long, Ragged
from evercontext.retrieval.static_vectors import StaticVectors
from evercontext.retrieval.term_keys import Keys, term_key, term_keys
from evercontext.retrieval.tokens import split_identifier, stem, terms_of_parts

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


class Places:
    """Tells the different values among many, and where each is among those."""

    def __init__(self) -> None:
        self._places: Long = np.zeros(1024, np.int64)

    def of(self, values: Long) -> tuple[Long, Long]:
        """Return the different values in order, and for each value its place in them."""
        ordered = np.sort(values)
        found = ordered[first_of_each(ordered)]
        if len(found) and found[-1] >= len(self._places):
            self._places = np.zeros(2 * int(found[-1]), np.int64)
        # What is left of other calls is never read: only places that were just written are.
        self._places[found] = np.arange(len(found))
        return found, self._places[values]


class Lexicon:
    """Numbers runs of text and names; hold ``lock`` while numbers are in use."""

    def __init__(self, vectors: StaticVectors | None = None) -> None:
        self.lock = threading.Lock()
        self.vectors = vectors
        self.term_places = Places()
        self.piece_places = Places()
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

    def runs(self, words: Scan) -> Long:
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
        found: NDArray[np.bool_] = self._telling.values[runs]
        return found

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
            found = self.vectors.pieces_of
            groups = [found(run, parts) for run, parts in zip(runs, split, strict=True)]
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
def lexicon_for(vectors: StaticVectors | None) -> Lexicon:
    """Return this process's lexicon for one set of vectors."""
    return Lexicon(vectors)
