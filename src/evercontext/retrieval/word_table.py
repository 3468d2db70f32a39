"""Static word vectors: a text's meaning as the weighted sum of its words, without a network.

The table is the one inside the ``wordllama`` package (MIT); only its two data files are read, the
package itself is never imported, because importing it may reach for a model hub. Words are cut
into the table's pieces by longest match.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.tokens import fold, runs, split_identifier

Vector = NDArray[np.float32]
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_MOST_WORDS = 60_000
_PIECES = "tokenizers/l2_supercat_tokenizer_config.json"


class StaticVectors:
    """A table of word pieces and the sums over it; remembers every word it has met."""

    name = "wordllama-256"
    lock = threading.Lock()
    """Held while rows are looked up and used: an indexing thread may learn words meanwhile."""
    bilingual = False
    """True if Japanese words have vectors of their own, and need no dictionary before."""

    def __init__(self, pieces: Mapping[str, int], table: Vector) -> None:
        self._pieces = pieces
        self._table = table
        self._longest = max(map(len, pieces))
        self._rows: dict[str, int] = {}
        self._words = np.zeros((1024, table.shape[1]), np.float32)

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        return int(self._table.shape[1])

    def row(self, run: str) -> int:
        """Return the row of a run of text in ``matrix()``; it is made on first sight."""
        found = self._rows.get(run)
        return self._learn(run) if found is None else found

    def rows(self, runs: Iterable[str]) -> NDArray[np.int64]:
        """Return the rows of many runs."""
        wanted, known = list(runs), self._rows
        for run in wanted:
            if run not in known:
                self._learn(run)
        return np.array([known[run] for run in wanted], np.int64)

    def matrix(self) -> Vector:
        """All rows known so far; the view is good until the next new word."""
        return self._words

    def _learn(self, run: str) -> int:
        row = len(self._rows)
        if row == len(self._words):
            self._words = np.concatenate([self._words, np.zeros_like(self._words)])
        ids, scale = self.pieces_of(run, split_identifier(run))
        if ids:
            self._words[row] = self._table[list(ids)].sum(axis=0) * scale
        self._rows[run] = row
        return row

    def _cut(self, word: str) -> list[int]:
        if len(word) < 2 or word.isdigit():
            return []
        text, ids, at = "▁" + word, [], 0
        while at < len(text):
            for end in range(min(len(text), at + self._longest), at, -1):
                found = self._pieces.get(text[at:end])
                if found is not None:
                    ids.append(found)
                    break
            else:
                end = at + 1
            at = end
        return ids

    def pieces_of(self, run: str, parts: Sequence[str]) -> tuple[Sequence[int], float]:
        """Return the pieces of a run of text in its parts, and by what their sum is scaled."""
        ids = [i for part in parts[:8] for i in self._cut(part[:40])]
        return ids, len(ids) ** -0.5 if ids else 0.0

    def piece_vectors(self, ids: NDArray[np.int64]) -> Vector:
        """Return what each piece adds to the meaning of a document."""
        found: Vector = self._table[ids]
        return found

    def pool(self, weights: Mapping[str, float]) -> Vector:
        """Return the normalised sum of weighted runs."""
        if not weights:
            return np.zeros(self.dimensions, np.float32)
        with self.lock:
            rows = [self.row(run) for run in weights]
            total = np.array(list(weights.values()), np.float32) @ self._words[rows]
        return normalise(total)

    def trim(self) -> None:
        """Forget the words met so far, once there are many: memory stays bounded."""
        with self.lock:
            if len(self._rows) > _MOST_WORDS:
                self._rows.clear()
                self._words = np.zeros((1024, self.dimensions), np.float32)

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return one normalised vector per text, each word counted by the root of its number."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            counts: dict[str, float] = {}
            for run in runs(fold(text)):
                counts[run] = counts.get(run, 0.0) + 1.0
            out[i] = self.pool({run: n**0.5 for run, n in counts.items()})
        return out

    def encode_questions(self, texts: Sequence[str]) -> Vector:
        """Return one normalised vector per question; this table makes no difference."""
        return self.encode(texts)


def normalise(vectors: Vector) -> Vector:
    """Return vectors of length one; zero stays zero."""
    length = np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True))
    out = np.zeros_like(vectors)
    np.divide(vectors, length, out=out, where=length > 0)
    return out


@lru_cache(maxsize=1)
def load_wordllama() -> StaticVectors | None:
    """Return the table inside the ``wordllama`` package, or ``None`` where it is not installed."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0])
    try:
        pieces = json.loads((home / _PIECES).read_bytes())["model"]["vocab"]
        content = (home / _WEIGHTS).read_bytes()
    except (OSError, ValueError, KeyError):
        return None
    header = int.from_bytes(content[:8], "little")
    shape = json.loads(content[8 : 8 + header])["embedding.weight"]["shape"]
    table = np.frombuffer(content, np.float16, offset=8 + header).reshape(shape)
    return StaticVectors(pieces, table.astype(np.float32))
