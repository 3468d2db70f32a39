"""A memory's text as numbers: its terms with their counts, and its vector, as they are kept.

A term's number is a hash of it, so that every process gives it the same one and no table of words
has to be shared.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.tokens import LONGEST_WORD, fold, runs, terms_of
from evercontext.retrieval.vectors import load_static_vectors

TERM = np.dtype([("id", "<u4"), ("count", "<u2")])
"""One term of a memory, as it lies in the ``terms`` column."""
ASKS = zlib.crc32(b"?")
"""The term of a memory that ends in a question: no word has it."""
_CLOSING = re.compile(r"[?？][\"'”’」』）)]*\s*(?:\[[^\]]*\]\s*)?$")
LONGEST_TEXT = 20_000
"""Characters of a memory that are searched; more are kept, and not looked at."""

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors of one length."""

    name: str

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One normalised vector per text."""
        ...

    def pool(self, weights: Mapping[str, float]) -> Vectors:
        """One normalised vector from weighted words."""
        ...


@lru_cache(maxsize=1)
def load_encoder() -> Encoder | None:
    """Return the best vectors this installation has, or ``None``: words alone will do."""
    return load_static_vectors()


@lru_cache(maxsize=200_000)
def term_id(term: str) -> int:
    """Return the number of a term."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=200_000)
def ids_of(run: str) -> tuple[int, ...]:
    """Return the numbers of one run's terms: figures too; a long run of Japanese is cut."""
    if run.isdigit():
        return (term_id(run),)
    if len(run) <= LONGEST_WORD or run.isascii():
        return tuple(term_id(term) for term in terms_of(run))
    parts = [run[i : i + LONGEST_WORD] for i in range(0, len(run), LONGEST_WORD - 1)]
    return tuple(term_id(term) for part in parts for term in terms_of(part))


def encode_terms(text: str) -> bytes:
    """Return a text's terms as they are kept."""
    counts: Counter[int] = Counter()
    for run, n in Counter(runs(fold(text[:LONGEST_TEXT]))).items():
        for number in ids_of(run):
            counts[number] += n
    if _CLOSING.search(text[-500:]):
        counts[ASKS] = 1
    pairs: NDArray[Any] = np.zeros(len(counts), TERM)
    pairs["id"] = np.fromiter(counts.keys(), np.uint32, len(counts))
    pairs["count"] = np.minimum(np.fromiter(counts.values(), np.int64, len(counts)), 65_535)
    return pairs.tobytes()


def encode_vectors(texts: Sequence[str]) -> tuple[str | None, list[bytes | None]]:
    """Return the encoder's name and each text's vector as it is kept: a byte per number."""
    encoder = load_encoder()
    if encoder is None:
        return None, [None] * len(texts)
    vectors = encoder.encode([text[:LONGEST_TEXT] for text in texts])
    return encoder.name, [row.tobytes() for row in _in_bytes(vectors)]


def _in_bytes(vectors: Vectors) -> NDArray[np.int8]:
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors * np.divide(127.0, largest, out=np.zeros_like(largest), where=largest > 0)
    rounded: NDArray[np.int8] = np.rint(scaled).astype(np.int8)
    return rounded


def decode_vectors(kept: Iterable[bytes | None], dimensions: int) -> Vectors:
    """Return kept vectors at length one; a missing or foreign one is all zero."""
    blank = bytes(dimensions)
    joined = b"".join(v if v is not None and len(v) == dimensions else blank for v in kept)
    vectors = np.frombuffer(joined, np.int8).reshape(-1, dimensions).astype(np.float32)
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    out: Vectors = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return out
