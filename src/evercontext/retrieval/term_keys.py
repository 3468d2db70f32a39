"""Compute stable numbers for terms in stored data, the same on every machine.

Hashes instead of a numbered vocabulary, because no table of words has to be shared. Both widths are
part of a storage format: the code index keeps 64 bits, a memory's row keeps 32.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]


@lru_cache(maxsize=100_000)
def term_key(term: str) -> int:
    """Return the 64-bit key of a term."""
    return int.from_bytes(_digest(term), "little")


def term_keys(terms: Sequence[str]) -> Keys:
    """Return the 64-bit keys of many terms that are not worth caching."""
    return np.frombuffer(b"".join(map(_digest, terms)), "<u8")


def _digest(term: str) -> bytes:
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()


@lru_cache(maxsize=200_000)
def short_term_key(term: str) -> int:
    """Return the 32-bit key of a term."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))
