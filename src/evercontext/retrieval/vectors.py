"""Define vector spaces, and store vectors as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""One vector, or one vector per row."""
ByteVector = NDArray[np.int8]
"""The same at a byte per number."""
BYTE_SCALE = 127
"""A number of a stored unit vector is this many times the number it stands for."""


class VectorSpace(Protocol):
    """Places texts in a space where near means alike."""

    name: str

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        ...

    def pool(self, weights: Mapping[str, float]) -> Vector:
        """Return one normalised vector for weighted words."""
        ...


def normalise(vectors: Vector) -> Vector:
    """Return vectors of length one; zero stays zero."""
    length = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    unit: Vector = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return unit


def to_bytes(vectors: Vector) -> ByteVector:
    """Return vectors at length one, times ``BYTE_SCALE``, as whole numbers."""
    return _rounded(normalise(vectors) * BYTE_SCALE)


def to_full_bytes(vectors: Vector) -> ByteVector:
    """Return each vector scaled until its largest number fills a byte; its length is lost.

    Finer than ``to_bytes``; good where only the direction is needed.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scale = np.divide(BYTE_SCALE, largest, out=np.zeros_like(largest), where=largest > 0)
    return _rounded(vectors * scale)


def from_bytes(stored: ByteVector) -> Vector:
    """Return stored vectors at length one."""
    return normalise(stored.astype(np.float32))


def _rounded(vectors: Vector) -> ByteVector:
    return np.rint(vectors).astype(np.int8)
