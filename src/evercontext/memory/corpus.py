"""Hold the memories a user may see as arrays, updated from rows.

A corpus holds only what its scope may see, so that nothing of anybody else's can come out of it,
not even through how rare a word is. One more memory costs what that memory costs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from evercontext.memory.encoding import TERM, decode_vectors
from evercontext.retrieval.postings import Column, Floats, Ints, Postings
from evercontext.retrieval.term_keys import short_term_key
from evercontext.storage.store import Row

ROUGH = 64
"""Leading numbers of a vector, by which candidates are chosen among many memories."""
NEEDED = (
    "number, change, session_id, speaker, memory_type, created_at, expires_at, state, importance,"
    " encoder, terms, vector"
)
_NEVER = np.inf


class MemoryCorpus:
    """Arrays with one entry per memory; ``alive`` says which still count."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.version = 0
        self.numbers = Column(np.int64)
        self.created = Column(np.float64)
        self.expires = Column(np.float64)
        self.months = Column(np.int8)
        self.lengths = Column(np.float32)
        self.importance = Column(np.float32)
        self.alive = Column(np.bool_)
        self.working = Column(np.bool_)
        self.speakers = Column(np.int32)
        self.sessions = Column(np.int32)
        self.previous = Column(np.int32)
        self.following = Column(np.int32)
        self.vectors = Column(np.float32, dimensions)
        self.rough = Column(np.float32, min(ROUGH, dimensions))
        self.speaker_names: dict[str, int] = {}
        self._session_codes: dict[str, int] = {}
        self._last_of: dict[int, int] = {}
        self._slots: dict[int, int] = {}
        self._terms: dict[int, int] = {}
        self._postings = Postings()
        self._session_lengths = Column(np.float32)
        self._total_length = 0.0

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def average_length(self) -> float:
        """Terms of a memory on average."""
        return max(1.0, self._total_length / max(1, len(self)))

    def postings(self, term: int) -> tuple[Ints, Floats]:
        """Return the memories that hold a term, and how often."""
        known = self._terms.get(term)
        return _NOTHING if known is None else self._postings.of(known)

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return how many memories hold each of some terms."""
        return [len(self.postings(short_term_key(term))[0]) for term in terms]

    def session_lengths(self) -> Floats:
        """Return how many terms each session has."""
        return self._session_lengths.values

    def take(self, rows: Sequence[Row]) -> None:
        """Take in rows that are new or changed since ``version``."""
        fresh = [row for row in rows if row["number"] not in self._slots]
        for row in rows:
            slot = self._slots.get(row["number"])
            if slot is not None:
                self.alive.values[slot] = row["state"] == "active"
                self.expires.values[slot] = seconds_of(row["expires_at"], _NEVER)
                self.importance.values[slot] = row["importance"]
        if fresh:
            self._add([row for row in fresh if row["state"] == "active"])
        self.version = max([self.version, *(row["change"] for row in rows)])

    def _add(self, rows: list[Row]) -> None:
        if not rows:
            return
        start = len(self)
        self.numbers.extend(np.array([row["number"] for row in rows], np.int64))
        created = [seconds_of(row["created_at"], 0.0) for row in rows]
        self.created.extend(np.array(created))
        self.expires.extend(np.array([seconds_of(row["expires_at"], _NEVER) for row in rows]))
        # Local, as the months that people name.
        months = [local_month(moment) for moment in created]
        self.months.extend(np.array(months, np.int8))
        self.importance.extend(np.array([row["importance"] for row in rows], np.float32))
        self.working.extend(np.array([row["memory_type"] == "working" for row in rows]))
        self.alive.extend(np.ones(len(rows), np.bool_))
        vectors = decode_vectors([row["vector"] for row in rows], max(1, self.dimensions))
        if self.dimensions:
            self.vectors.extend(vectors)
            self.rough.extend(vectors[:, : self.rough.values.shape[1]])
        self._add_people(rows, start)
        self._add_terms(rows, start)

    def _add_people(self, rows: list[Row], start: int) -> None:
        """Who spoke, in which session, after what."""
        names, codes, last = self.speaker_names, self._session_codes, self._last_of
        speakers, sessions, previous = [], [], []
        following: Ints = np.full(len(rows), -1, np.int32)
        self.following.extend(following)
        links = self.following.values
        for slot, row in enumerate(rows, start):
            self._slots[row["number"]] = slot
            speaker, session = row["speaker"], row["session_id"]
            speakers.append(names.setdefault(speaker.casefold(), len(names)) if speaker else -1)
            code = codes.setdefault(session, len(codes)) if session else -1
            before = last.get(code, -1) if session else -1
            if session:
                last[code] = slot
            if before >= 0:
                links[before] = slot
            sessions.append(code)
            previous.append(before)
        self.speakers.extend(np.array(speakers, np.int32))
        self.sessions.extend(np.array(sessions, np.int32))
        self.previous.extend(np.array(previous, np.int32))

    def _add_terms(self, rows: list[Row], start: int) -> None:
        blobs = [row["terms"] or b"" for row in rows]
        sizes = np.array([len(blob) // TERM.itemsize for blob in blobs], np.int64)
        pairs = np.frombuffer(b"".join(blobs), TERM)
        slots = np.repeat(np.arange(start, start + len(rows), dtype=np.int32), sizes)
        counted = pairs["count"].astype(np.float64)
        lengths = np.zeros(len(rows), np.float64)
        np.add.at(lengths, slots - start, counted)
        self.lengths.extend(lengths.astype(np.float32))
        self._total_length += float(lengths.sum())
        self._add_to_sessions(self.sessions.values[start:], lengths)
        if start == 0:
            self._build(pairs["id"], slots, pairs["count"].astype(np.float32))
            return
        known = self._terms
        ids = [known.setdefault(number, len(known)) for number in pairs["id"].tolist()]
        ends = np.cumsum(sizes).tolist()
        counts = pairs["count"].tolist()
        for slot, begin, end in zip(range(start, len(self)), [0, *ends], ends, strict=False):
            self._postings.add(slot, ids[begin:end], counts[begin:end])

    def _add_to_sessions(self, sessions: Ints, lengths: NDArray[np.float64]) -> None:
        missing = len(self._session_codes) - len(self._session_lengths)
        self._session_lengths.extend(np.zeros(missing, np.float32))
        inside = sessions >= 0
        terms = np.bincount(sessions[inside], lengths[inside], minlength=len(self._session_codes))
        self._session_lengths.values[:] += terms.astype(np.float32)

    def _build(self, numbers: NDArray[np.uint32], slots: Ints, counts: Floats) -> None:
        unique, dense = np.unique(numbers, return_inverse=True)
        self._terms = {number: i for i, number in enumerate(unique.tolist())}
        terms = dense.astype(np.int32)
        self._postings = Postings.build(terms, slots, counts, len(unique))


_NOTHING: tuple[Ints, Floats] = (np.zeros(0, np.int32), np.zeros(0, np.float32))


def local_month(moment: float) -> int:
    """Return the month of a moment on this machine's clock."""
    return time.localtime(moment).tm_mon


def seconds_of(moment: str | None, default: float) -> float:
    """Return a stored moment as seconds since 1970; ``default`` for none."""
    if not moment:
        return default
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return default
