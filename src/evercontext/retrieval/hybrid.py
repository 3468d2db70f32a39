"""A small searchable collection of texts with fields: tools, memories, anything but code.

Field-weighted BM25 and static vectors, added as standard scores, each explained. One more
document costs what that document costs; a removed one is forgotten at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from evercontext.retrieval.fusion import standardise
from evercontext.retrieval.postings import Column, Floats, Ints, Postings
from evercontext.retrieval.tokens import count_terms, fold, query_terms
from evercontext.retrieval.vectors import StaticVectors

Expand = Callable[[str], Mapping[str, float]]
"""Turns a question into more terms, such as the English words behind Japanese ones."""


@dataclass(frozen=True, slots=True)
class Field:
    """How much one occurrence in a field counts, and how much its length is held against it."""

    worth: float = 1.0
    length: float = 0.5


@dataclass(frozen=True, slots=True)
class Match:
    """A document that answers, with what spoke for it."""

    key: str
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)


class TextIndex:
    """Documents of named fields, searched by words and by meaning."""

    def __init__(
        self,
        fields: Mapping[str, Field],
        vectors: StaticVectors | None = None,
        *,
        meaning: float = 1.0,
        saturation: float = 1.5,
        expand: Expand | None = None,
    ) -> None:
        self._fields = dict(fields)
        self._vectors = vectors
        self._meaning = meaning
        self._saturation = saturation
        self._expand = expand
        self._terms: dict[str, int] = {}
        self._keys: list[str] = []
        self._slots: dict[str, int] = {}
        self._postings = {name: Postings() for name in fields}
        self._lengths = {name: Column(np.float32) for name in fields}
        self._totals = dict.fromkeys(fields, 0.0)
        self._frequency = Column(np.int32)
        self._own_terms: list[Ints] = []
        self._alive = Column(np.bool_)
        self._meanings = Column(np.float32, vectors.dimensions if vectors else 0)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def put(self, key: str, texts: Mapping[str, str]) -> None:
        """Add a document, or replace it; fields that are not given are empty."""
        self.remove(key)
        slot = len(self._keys)
        seen: list[Ints] = []
        for name in self._fields:
            counts = count_terms(fold(texts.get(name, "")))
            ids = self._ids(counts)
            self._postings[name].add(slot, ids.tolist(), counts.values())
            self._lengths[name].extend(np.array([counts.total()], np.float32))
            self._totals[name] += counts.total()
            seen.append(ids)
        self._own_terms.append(np.unique(np.concatenate(seen)))
        self._frequency.values[self._own_terms[-1]] += 1
        self._keys.append(key)
        self._slots[key] = slot
        self._alive.extend(np.ones(1, np.bool_))
        if self._vectors:
            text = "\n".join(texts.get(name, "") for name in self._fields)
            self._meanings.extend(self._vectors.encode([text]))

    def remove(self, key: str) -> bool:
        """Forget a document; False if it was not there."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return False
        self._alive.values[slot] = False
        self._frequency.values[self._own_terms[slot]] -= 1
        for name in self._fields:
            self._totals[name] -= float(self._lengths[name].values[slot])
        return True

    def search(
        self, query: str, limit: int = 10, *, allow: Callable[[str], bool] | None = None
    ) -> list[Match]:
        """Return the best documents, best first; ``allow`` limits the keys."""
        alive = self._alive.values.copy()
        if allow is not None:
            for key, slot in self._slots.items():
                alive[slot] = allow(key)
        if not alive.any():
            return []
        words = self.word_scores(query)
        meaning = self._meaning_scores(query)
        scores = np.full(len(alive), -np.inf, np.float32)
        scores[alive] = standardise(words[alive])
        if meaning is not None:
            scores[alive] += np.float32(self._meaning) * standardise(meaning[alive])
        return self._matches(scores, words, meaning, limit)

    def word_scores(self, query: str) -> Floats:
        """Return the BM25F of every document ever put, removed ones included."""
        weights = dict(query_terms(query))
        if self._expand is not None:
            for term, weight in self._expand(query).items():
                weights[term] = max(weight, weights.get(term, 0.0))
        scores = np.zeros(len(self._keys), np.float32)
        for term, weight in weights.items():
            found = self._terms.get(term)
            if found is not None:
                frequency = self._term_frequency(found)
                rarity = np.float32(weight * self._rarity(found))
                scores += rarity * frequency / (frequency + np.float32(self._saturation))
        return scores

    def _term_frequency(self, term: int) -> Floats:
        total = np.zeros(len(self._keys), np.float32)
        for name, kind in self._fields.items():
            documents, counts = self._postings[name].of(term)
            if not len(documents):
                continue
            average = max(1.0, self._totals[name] / max(1, len(self)))
            lengths = self._lengths[name].values[documents]
            norm = 1.0 - kind.length + kind.length * lengths / np.float32(average)
            total[documents] += np.float32(kind.worth) * counts / norm
        return total

    def _rarity(self, term: int) -> float:
        frequency = float(self._frequency.values[term])
        return float(np.log(1.0 + (len(self) - frequency + 0.5) / (frequency + 0.5)))

    def _meaning_scores(self, query: str) -> Floats | None:
        if self._vectors is None or self._meaning == 0:
            return None
        vector = self._vectors.encode_questions([query])[0]
        scores: Floats = self._meanings.values @ vector
        return scores if vector.any() else None

    def _matches(
        self, scores: Floats, words: Floats, meaning: Floats | None, limit: int
    ) -> list[Match]:
        matches = []
        for slot in np.argsort(-scores, kind="stable")[:limit].tolist():
            if not np.isfinite(scores[slot]):
                break
            signals = {"words": round(float(words[slot]), 4)}
            if meaning is not None:
                signals["meaning"] = round(float(meaning[slot]), 4)
            if any(value > 0 for value in signals.values()):
                matches.append(Match(self._keys[slot], float(scores[slot]), signals))
        return matches

    def _ids(self, terms: Mapping[str, int]) -> Ints:
        known = self._terms
        ids: Ints = np.array([known.setdefault(t, len(known)) for t in terms], np.int32)
        missing = len(known) - len(self._frequency)
        if missing:
            self._frequency.extend(np.zeros(missing, np.int32))
        return ids
