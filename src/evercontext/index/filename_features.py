"""Compute the ranking signals of file names: how well they fit the words of a question."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set

import numpy as np

from evercontext.index.path_features import PathWords
from evercontext.retrieval.postings import Floats
from evercontext.retrieval.terms import stem

_TELLING = 3
"""So many letters at the beginning must be the same, or a pair does not fit at all."""
_HELD = 4
_INSIDE = 0.4
_NEAR, _ALL = 0.8, 0.7


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


_Fit = tuple[float, int, float, float]
"""How well a part of a path fits the question: the best fit, the word that it is with, and how well
it fits the first and the last word, by what they weigh."""
_NO_FIT: _Fit = (0.0, 0, 0.0, 0.0)


class FilenameMatcher:
    """Compares one question with many file names at once."""

    def __init__(self, words: tuple[str, ...], weights: dict[str, float]) -> None:
        self._words = list(weights)
        self._weights = list(weights.values())
        self._total = sum(self._weights) or 1.0
        self._joined = joined(words)
        self._squeezed = "".join(words)
        # Questions name their subject at an edge: where its words are, and what they weigh.
        heaviest = max(self._weights, default=0.0) or 1.0
        self._edges = [
            (self._words.index(word), weights[word] / heaviest) for word in words[:1] + words[-1:]
        ]

    def rows(self, paths: Sequence[PathWords]) -> Floats:
        """Return the signals of paths, in the order of ``STEM_NAMES``."""
        fits = self._fits(set().union(*[path.parts for path in paths]))
        near = {part for part, fit in fits.items() if fit[0] >= _NEAR}
        at = [i for i, path in enumerate(paths) if self._touches(path, fits.keys())]
        out = np.zeros((len(paths), 8), np.float32)
        if at:
            out[at] = [
                (*self._stem(paths[i], fits), _share_in(near, paths[i].parent_terms)) for i in at
            ]
        return out

    def _touches(self, path: PathWords, fitting: Set[str]) -> bool:
        """False if no signal can be more than 0: so it is with every other path."""
        return not (
            path.parts.isdisjoint(fitting)
            and path.stem not in self._squeezed
            and path.stem not in self._joined
            and path.stem_term not in self._joined
        )

    def _fits(self, parts: Collection[str]) -> dict[str, _Fit]:
        """Return the parts that fit a word, and how well.

        Nearly all pairs have nothing in common, so pairs are found by what they share: the same
        beginning, or one held in the other. Those alone are compared.
        """
        fits: dict[str, dict[int, float]] = {}
        text, question_words = "\n" + "\n".join(parts) + "\n", "\n".join(self._words)
        held = [part for part in parts if len(part) >= _HELD and part in question_words]
        for j, word in enumerate(self._words):
            if len(word) >= _HELD:
                for part in (*_lines_with(word, text), *(p for p in held if p in word)):
                    fits.setdefault(part, {})[j] = _INSIDE
            begins = f"\n{word[:_TELLING]}" if len(word) >= _TELLING else f"\n{word}\n"
            for part in _lines_with(begins, text):
                if fit := overlap(word, part):
                    fits.setdefault(part, {})[j] = fit
        return {part: self._fit(values) for part, values in fits.items()}

    def _fit(self, values: Mapping[int, float]) -> _Fit:
        best, word = 0.0, 0
        for j, value in values.items():
            if value > best:
                best, word = value, j
        (first, heavy), (last, weight) = self._edges
        return best, word, values.get(first, 0.0) * heavy, values.get(last, 0.0) * weight

    def _stem(self, path: PathWords, fits: Mapping[str, _Fit]) -> tuple[float, ...]:
        equals = self._joined.get(path.stem) or self._joined.get(path.stem_term, 0)
        contained = len(path.stem) >= _HELD and path.stem in self._squeezed
        matches = [(*fits[part], len(part)) for part in path.stem_words if part in fits]
        stem_fit = fits.get(path.stem)
        if not matches and stem_fit is None:
            return 0.0, 0.0, equals**0.5, contained, 0.0, 0.0, 0.0
        gained: dict[int, float] = {}
        fitting = 0.0
        _, _, first, last = stem_fit or _NO_FIT
        for best, word, at_first, at_last, size in matches:
            fitting += best * size
            if best > gained.get(word, 0.0):
                gained[word] = best
            first = at_first if at_first > first else first
            last = at_last if at_last > last else last
        return (
            sum(best * self._weights[word] for word, best in gained.items()) / self._total,
            fitting / len(path.stem),
            equals**0.5,
            contained,
            first,
            last,
            0 < len(matches) == len(path.stem_words) and min(matches)[0] >= _ALL,
        )


def _share_in(known: Set[str], parts: Sequence[str]) -> float:
    if known.isdisjoint(parts):
        return 0.0
    return sum(map(known.__contains__, parts)) / len(parts)


def _lines_with(piece: str, text: str) -> Iterator[str]:
    """Yield the lines of a text that hold a piece; every line begins and ends with a break."""
    at = text.find(piece)
    while at >= 0:
        start = text.rfind("\n", 0, at + 1) + 1
        end = text.find("\n", start)
        yield text[start:end]
        at = text.find(piece, end)
