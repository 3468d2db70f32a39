"""Many rows times one vector, on one thread whatever the environment says.

A linear algebra library starts a thread per core for one large product, and the threads spin when
they are done: three times the CPU time for no gain on a busy machine. It does not for small ones.
"""

from __future__ import annotations

import numpy as np

from evercontext.retrieval.postings import Floats

SMALL = 8_192
"""Numbers of a block; OpenBLAS stays on one thread below 9,216."""


def dot(rows: Floats, vector: Floats) -> Floats:
    """Return ``rows @ vector``."""
    count, width = rows.shape
    block = max(1, SMALL // max(1, width))
    whole = count // block * block
    out = np.empty(count, np.float32)
    if whole:
        blocks = rows[:whole].reshape(-1, block, width)
        np.matmul(blocks, vector, out=out[:whole].reshape(-1, block))
    out[whole:] = rows[whole:] @ vector
    return out
