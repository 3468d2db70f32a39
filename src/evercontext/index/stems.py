"""How well the words of a question fit the name of a file."""

from __future__ import annotations

from evercontext.index.paths import PathFacts
from evercontext.retrieval.tokens import stem

Row = tuple[float, float, float, float, float, float, float, float]


def overlap(word: str, part: str) -> float:
    """Return how well a word fits a part of a name: equal, a prefix, contained, or alike."""
    if word == part:
        return 1.0
    short, long = (word, part) if len(word) <= len(part) else (part, word)
    if len(short) >= 3 and long.startswith(short):
        return 0.5 + 0.5 * len(short) / len(long)
    if len(short) >= 4 and short in long:
        return 0.4
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
    """Compares one question with many file names; parts seen before cost nothing."""

    def __init__(self, words: tuple[str, ...], weights: dict[str, float]) -> None:
        self._weights = weights
        self._words = list(weights)
        self._total = sum(weights.values()) or 1.0
        heaviest = max(weights.values(), default=1.0) or 1.0
        self._joined = joined(words)
        self._squeezed = "".join(words)
        # Questions name their subject at an edge: where its words are, and what they weigh.
        self._edges = [
            (self._words.index(word), weights[word] / heaviest)
            for word in (words[:1] + words[-1:] if words else ())
        ]
        self._fits: dict[str, tuple[float, str, tuple[float, ...]]] = {}
        self._rows: dict[tuple[str, ...], Row] = {}

    def row(self, facts: PathFacts) -> Row:
        """Return the signals of one path, in the order of ``STEM_NAMES``."""
        key = (facts.stem, *facts.stem_words, "/", *facts.parent_terms)
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._compare(facts)
        return found

    def _fit(self, part: str) -> tuple[float, str, tuple[float, ...]]:
        """Return the best fit of a part, the word it is to, and the fits to the edge words."""
        found = self._fits.get(part)
        if found is None:
            fits = [overlap(word, part) for word in self._words]
            best = max(fits, default=0.0)
            word = self._words[fits.index(best)] if fits else ""
            edges = tuple(fits[at] * weight for at, weight in self._edges)
            found = self._fits[part] = (best, word, edges)
        return found

    def _compare(self, facts: PathFacts) -> Row:
        parts, name = facts.stem_words, facts.stem
        gained: dict[str, float] = {}
        letters = matched = 0.0
        first = last = 0.0
        lowest = 1.0 if parts else 0.0
        for part in parts if len(parts) < 2 else (*parts, name):
            fit, word, edges = self._fit(part)
            if edges:
                first, last = max(first, edges[0]), max(last, edges[1])
            if part is name and len(parts) > 1:
                break
            if fit > gained.get(word, 0.0):
                gained[word] = fit
            letters += len(part)
            matched += fit * len(part)
            lowest = min(lowest, fit)
        equals = self._joined.get(name) or self._joined.get(stem(name), 0)
        parents = facts.parent_terms
        near = 0
        for part in parents:
            near += self._fit(part)[0] >= 0.8
        return (
            sum([self._weights[word] * fit for word, fit in gained.items()]) / self._total,
            matched / (letters or 1.0),
            min(equals, 3) ** 0.5,
            float(len(name) >= 4 and name in self._squeezed),
            first,
            last,
            float(lowest >= 0.7),
            near / len(parents) if parents else 0.0,
        )
