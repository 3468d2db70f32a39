"""Put scores of different kinds on one scale and add them.

Ranks alone (reciprocal-rank fusion) throw away how sure a signal is: a weak signal then pulls a
strong one down. Standard scores keep that, and a signal that says nothing adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evercontext.retrieval.postings import Floats

_FLAT = 1e-9
"""Scores that differ by less are all equal."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The mean and the spread of scores."""

    mean: float = 0.0
    spread: float = 0.0
    """The standard deviation; 0 where all scores are equal."""

    @classmethod
    def of(cls, scores: Floats, least: float = 0.0) -> Scale:
        """Measure scores; a spread below ``least`` counts as ``least``.

        Among few scores a small difference would otherwise look like a large one.
        """
        if not len(scores):
            return cls()
        spread = float(scores.std())
        return cls(float(scores.mean()), max(spread, least) if max(spread, least) > _FLAT else 0.0)

    def apply(self, scores: Floats) -> Floats:
        """Return standard scores: how many spreads each score lies above the mean."""
        if not self.spread:
            return np.zeros(len(scores), np.float32)
        standard: Floats = (scores - self.mean) / np.float32(self.spread)
        return standard.astype(np.float32, copy=False)


def standardise(scores: Floats, least: float = 0.0) -> Floats:
    """Return scores with mean 0 and spread 1; all equal gives all 0."""
    return Scale.of(scores, least).apply(scores)


def weighted_sum(signals: Mapping[str, Floats], weights: Mapping[str, float], size: int) -> Floats:
    """Return the sum of named signals, each multiplied by its weight."""
    total = np.zeros(size, np.float32)
    for name, values in signals.items():
        total += np.float32(weights[name]) * values
    return total
