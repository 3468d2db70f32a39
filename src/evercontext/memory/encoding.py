"""Encode a memory's text: its terms with counts, and its vector.

A term's number is a hash of it, so that every process gives it the same one and no table of words
has to be shared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.static_vectors import load_static_vectors
from evercontext.retrieval.term_keys import short_term_key
from evercontext.retrieval.terms import LONGEST_WORD, fold, runs, terms_of
from evercontext.retrieval.vectors import Vector, from_bytes, to_full_bytes

TERM = np.dtype([("id", "<u4"), ("count", "<u2")])
"""One term of a memory, as it lies in the ``terms`` column."""
ASKS = short_term_key("?")
"""The term of a memory that ends in a question: no word has it."""
_CLOSING = re.compile(r"[?？][\"'”’」』）)]*\s*(?:\[[^\]]*\]\s*)?$")
LONGEST_TEXT = 20_000
"""Characters of a memory that are searched; more are kept, and not looked at."""


@lru_cache(maxsize=200_000)
def ids_of(run: str) -> tuple[int, ...]:
    """Return the numbers of one run's terms: figures too; a long run of Japanese is cut."""
    if run.isdigit():
        return (short_term_key(run),)
    if len(run) <= LONGEST_WORD or run.isascii():
        return tuple(short_term_key(term) for term in terms_of(run))
    parts = [run[i : i + LONGEST_WORD] for i in range(0, len(run), LONGEST_WORD - 1)]
    return tuple(short_term_key(term) for part in parts for term in terms_of(part))


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
    encoder = load_static_vectors()
    if encoder is None:
        return None, [None] * len(texts)
    vectors = encoder.encode([text[:LONGEST_TEXT] for text in texts])
    return encoder.name, [row.tobytes() for row in to_full_bytes(vectors)]


def decode_vectors(stored: Iterable[bytes | None], dimensions: int) -> Vector:
    """Return stored vectors at length one; a missing or foreign one is all zero."""
    blank = bytes(dimensions)
    joined = b"".join(v if v is not None and len(v) == dimensions else blank for v in stored)
    return from_bytes(np.frombuffer(joined, np.int8).reshape(-1, dimensions))
