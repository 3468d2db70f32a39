"""How well the words of a question fit the name of a file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evercontext.index.paths import PathFacts
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.tokens import stem

_TELLING = 3
"""So many letters at the beginning must be the same, or a pair does not fit at all."""
_HELD = 4
_INSIDE = 0.4


def overlap(word: str, part: str) -> float:
    """Return how well a word fits a part of a name: equal, a prefix, contained, or alike."""
    if word == part:
        return 1.0
    short, long = (word, part) if len(word) <= len(part) else (part, word)
    if len(short) >= _TELLING and long.startswith(short):
        return 0.5 + 0.5 * len(short) / len(long)
    if len(short) >= _HELD and short in long:
        return _INSIDE
    common = 0
    for a, b in zip(short, long, strict=False):
        if a != b:
            break
        common += 1
    return 0.6 * common / len(long) if common >= 4 else 0.0


def joined(words: tuple[str, ...]) -> dict[str, int]:
    """Return one to three adjacent words written together, with their number."""
    out: dict[str, int] = {}
    for size in (1, 2, 3):
        for i in range(len(words) - size + 1):
            text = "".join(words[i : i + size])
            out.setdefault(text, size)
            out.setdefault(stem(text), size)
    return out


class StemMatcher:
    """Compares one question with many file names at once."""

    def __init__(self, words: tuple[str, ...], weights: dict[str, float]) -> None:
        self._words = list(weights)
        self._weights = np.array(list(weights.values()), np.float32)
        self._total = float(self._weights.sum()) or 1.0
        heaviest = float(self._weights.max(initial=0.0)) or 1.0
        self._joined = joined(words)
        self._squeezed = "".join(words)
        # Questions name their subject at an edge: where its words are, and what they weigh.
        self._edges = [self._words.index(word) for word in words[:1] + words[-1:]]
        self._edge_weights = self._weights[self._edges] / heaviest

    def rows(self, paths: Sequence[PathFacts]) -> Floats:
        """Return the signals of paths, in the order of ``STEM_NAMES``."""
        place: dict[str, int] = {}
        stems = [
            (i, place.setdefault(part, len(place)), len(part))
            for i, facts in enumerate(paths)
            for part in facts.stem_words
        ]
        wholes = [place.setdefault(facts.stem, len(place)) for facts in paths]
        parents = [
            (i, place.setdefault(part, len(place)))
            for i, facts in enumerate(paths)
            for part in facts.parent_terms
        ]
        fits = self._fits(list(place))
        out = np.zeros((len(paths), 8), np.float32)
        self._compare_stems(out, fits, stems, wholes)
        out[:, 2:4] = [self._whole(facts.stem, facts.stem_term) for facts in paths]
        if parents and len(self._words):
            owner, part = np.array(parents).T
            near = np.bincount(owner, fits.max(axis=1)[part] >= 0.8, len(paths))
            out[:, 7] = near / np.maximum(np.bincount(owner, minlength=len(paths)), 1)
        return out

    def _fits(self, parts: list[str]) -> Floats:
        """Return how well each part fits each word; nearly all pairs begin otherwise: those are
        only asked whether one holds the other."""
        words = [(word, word[:_TELLING], len(word)) for word in self._words]
        found = np.zeros((len(parts), len(words)), np.float32)
        for i, part in enumerate(parts):
            begins, size = part[:_TELLING], len(part)
            for j, (word, start, length) in enumerate(words):
                if begins == start:
                    found[i, j] = overlap(word, part)
                elif size >= _HELD <= length and (word in part or part in word):
                    found[i, j] = _INSIDE
        return found

    def _compare_stems(
        self, out: Floats, fits: Floats, stems: list[tuple[int, int, int]], wholes: list[int]
    ) -> None:
        if not stems or not self._words:
            return
        owner, part, letters = np.array(stems).T
        mine = fits[part]
        best, word = mine.max(axis=1), mine.argmax(axis=1)
        gained = np.zeros((len(out), len(self._words)), np.float32)
        np.maximum.at(gained, (owner, word), best)
        out[:, 0] = gained @ self._weights / np.float32(self._total)
        total = np.maximum(np.bincount(owner, letters, len(out)), 1.0)
        out[:, 1] = np.bincount(owner, best * letters, len(out)) / total
        edges = fits[:, self._edges] * self._edge_weights
        near = np.zeros((len(out), 2), np.float32)
        np.maximum.at(near, owner, edges[part])
        out[:, 4:6] = np.maximum(near, edges[wholes])
        lowest = np.ones(len(out), np.float32)
        np.minimum.at(lowest, owner, best)
        has_parts = np.bincount(owner, minlength=len(out)) > 0
        out[:, 6] = has_parts & (lowest >= 0.7)

    def _whole(self, name: str, term: str) -> tuple[float, float]:
        """Return whether a name is words of the question written together, or inside them."""
        equals = self._joined.get(name) or self._joined.get(term, 0)
        return min(equals, 3) ** 0.5, float(len(name) >= 4 and name in self._squeezed)
