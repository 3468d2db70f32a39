"""The vectors of this installation: our own, or else the spare table."""

from __future__ import annotations

from functools import lru_cache

from evercontext.retrieval.static_model import load_static_model
from evercontext.retrieval.threads import use_one_thread
from evercontext.retrieval.word_table import StaticVectors, Vector, load_wordllama, normalise

__all__ = ["StaticVectors", "Vector", "load_static_vectors", "load_wordllama", "normalise"]


@lru_cache(maxsize=1)
def load_static_vectors() -> StaticVectors | None:
    """Return our own vectors, else wordllama's, or ``None`` where there are neither."""
    use_one_thread()
    return load_static_model() or load_wordllama()
