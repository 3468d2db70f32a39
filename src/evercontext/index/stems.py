"""How well the words of a question fit the name of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evercontext.index.paths import PathFacts
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.ragged import Long
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
        stems = [part for facts in paths for part in facts.stem_words]
        parents = [part for facts in paths for part in facts.parent_terms]
        wholes = [facts.stem for facts in paths]
        unique = dict.fromkeys((*stems, *wholes, *parents))
        parts = dict(zip(unique, range(len(unique)), strict=True))
        fits = self._fits(parts)
        out = np.zeros((len(paths), 8), np.float32)
        out[:, 2:4] = [self._whole(facts.stem, facts.stem_term) for facts in paths]
        if not self._words:
            return out
        if stems:
            sizes = np.array([len(facts.stem_words) for facts in paths])
            letters = np.array([len(part) for part in stems])
            self._compare_stems(out, fits[[parts[part] for part in stems]], letters, sizes)
        edges = (fits[:, self._edges] * self._edge_weights)[[parts[name] for name in wholes]]
        out[:, 4:6] = np.maximum(out[:, 4:6], edges)
        if parents:
            sizes = np.array([len(facts.parent_terms) for facts in paths])
            near = fits.max(axis=1)[[parts[part] for part in parents]] >= 0.8
            found = np.bincount(np.repeat(np.arange(len(paths)), sizes), near, len(paths))
            out[:, 7] = found / np.maximum(sizes, 1)
        return out

    def _fits(self, parts: dict[str, int]) -> Floats:
        """Return how well each part fits each word.

        Nearly all pairs have nothing in common, so pairs are found by what they share: the same
        beginning, or one held in the other. Those alone are compared.
        """
        found = np.zeros((len(parts), len(self._words)), np.float32)
        alike: dict[str, list[str]] = {}
        for part in parts:
            alike.setdefault(part[:_TELLING], []).append(part)
        text, asked = "\n".join(parts), "\n".join(self._words)
        held = [part for part in parts if len(part) >= _HELD and part in asked]
        for j, word in enumerate(self._words):
            if len(word) >= _HELD:
                for part in (*_lines_with(word, text), *(p for p in held if p in word)):
                    found[parts[part], j] = _INSIDE
            for part in alike.get(word[:_TELLING], ()):
                found[parts[part], j] = overlap(word, part)
        return found

    def _compare_stems(self, out: Floats, fits: Floats, letters: Long, sizes: Long) -> None:
        """Compare the parts of stems, file after file, given by how well each fits each word."""
        has = np.flatnonzero(sizes)
        first = (np.cumsum(sizes) - sizes)[has]
        best, word = fits.max(axis=1), fits.argmax(axis=1)
        gained = np.zeros(len(out) * len(self._words), np.float32)
        owner = np.repeat(np.arange(len(out)), sizes)
        np.maximum.at(gained, owner * len(self._words) + word, best)
        out[:, 0] = gained.reshape(len(out), -1) @ self._weights / np.float32(self._total)
        out[has, 1] = np.add.reduceat(best * letters, first) / np.add.reduceat(letters, first)
        out[has, 4:6] = np.maximum.reduceat(fits[:, self._edges] * self._edge_weights, first)
        out[has, 6] = np.minimum.reduceat(best, first) >= 0.7

    def _whole(self, name: str, term: str) -> tuple[float, float]:
        """Return whether a name is words of the question written together, or inside them."""
        equals = self._joined.get(name) or self._joined.get(term, 0)
        return min(equals, 3) ** 0.5, float(len(name) >= 4 and name in self._squeezed)


def _lines_with(word: str, text: str) -> Iterator[str]:
    """Yield the lines of a text that hold a word."""
    at = text.find(word)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        yield text[start:end]
        at = text.find(word, end)
