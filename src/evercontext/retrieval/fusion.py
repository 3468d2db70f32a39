"""Put scores of different kinds on one scale and add them.

Ranks alone (reciprocal-rank fusion) throw away how sure a signal is: a weak signal then pulls a
strong one down. Standard scores keep that, and a signal that says nothing adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evercontext.retrieval.postings import Floats


def standardise(scores: Floats) -> Floats:
    """Return scores with mean 0 and spread 1; all equal gives all 0."""
    if not len(scores):
        return scores
    spread = float(scores.std())
    centred: Floats = scores - scores.mean()
    return centred / np.float32(spread) if spread > 1e-9 else np.zeros_like(centred)


def fuse(signals: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return the weighted sum of standardised signals."""
    parts = [np.float32(weights[name]) * standardise(values) for name, values in signals.items()]
    total: Floats = np.sum(parts, axis=0)
    return total
