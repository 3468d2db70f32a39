"""Store rows of different lengths in flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.postings import Column

Long = NDArray[np.int64]


def spread(starts: NDArray[Any], sizes: NDArray[Any]) -> Long:
    """Return the places of all elements of slices: each ``start``, and the ``size - 1`` after."""
    ends = sizes.cumsum(dtype=np.int64)
    places: Long = (starts - ends + sizes).repeat(sizes)
    places += np.arange(len(places))
    return places


def gather(
    values: NDArray[Any],
    starts: NDArray[Any],
    sizes: NDArray[Any],
    dtype: type[np.generic] | None = None,
) -> NDArray[Any]:
    """Return the elements of slices one after another: quicker than by their places if few."""
    parts = [
        values[start : start + size]
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]
    return np.concatenate(parts, dtype=dtype) if parts else values[:0].astype(dtype or values.dtype)


class Ragged:
    """Rows that are appended and fetched many at once."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._starts = Column(np.int64)
        self._sizes = Column(np.int64)
        self._values = Column(dtype)

    def __len__(self) -> int:
        return len(self._sizes)

    def extend(self, sizes: NDArray[Any], values: NDArray[Any]) -> None:
        """Append rows: their sizes, and all their values one after another."""
        ends = np.cumsum(sizes, dtype=np.int64)
        self._starts.extend(len(self._values) + ends - sizes)
        self._sizes.extend(sizes)
        self._values.extend(values)

    def take(self, rows: NDArray[Any]) -> tuple[NDArray[Any], Long]:
        """Return the values of some rows one after another, and the rows' sizes."""
        sizes = self._sizes.values[rows]
        return self._values.values[spread(self._starts.values[rows], sizes)], sizes
