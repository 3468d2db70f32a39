"""Load static word vectors: code, English and Japanese in one space.

The file is mapped, not read: a word's numbers are fetched when it is first met. A text is the sum
of its words; each piece of a word has one learned weight for questions and one for documents,
because "the" means nothing in either but "return" means something only in a question.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.blas import limit_blas_threads
from evercontext.retrieval.terms import fold, runs, split_identifier
from evercontext.retrieval.vectors import ByteVector, Vector, VectorSpace, normalise

MAGIC = b"ECV1"
_JAPANESE = re.compile(
    r"[\u30a1-\u30ff\uff66-\uff9f]+|[\u3005\u3400-\u9fff\uf900-\ufaff]+[\u3041-\u309f]{0,3}"
    r"|[\u3041-\u309f]+|[\uac00-\ud7a3]+"
)
_LONGEST = 40
_LONGEST_PIECE = 14
"""Longer pieces are whole words: looking for them inside unknown words finds next to nothing."""
_MOST_PARTS = 12
_FIRST_RUNS, _MOST_RUNS = 1024, 60_000
"""Runs of text whose vectors are remembered: at first, and until all are forgotten."""
_NUMBERED = re.compile(r"[a-z]{0,2}\d+")
"""Numbers, and what means no more: half of the words that no piece covers."""
_OPENING = 4
"""Letters by which a longer piece is looked for."""
_UNKNOWN = -25.0
"""Score of a character that no piece covers: any cut with pieces is better."""


def words_of(run: str) -> list[str]:
    """Return the words of one run: identifier parts, or Japanese cut where the script changes.

    Kanji keep up to three hiragana, so that a verb stays apart from the noun it shares kanji with.
    """
    if run.isascii():
        return split_identifier(run)[:_MOST_PARTS]
    if _JAPANESE.match(run):
        return _JAPANESE.findall(run)[: 4 * _MOST_PARTS]
    return split_identifier(run)[:_MOST_PARTS]


class Pieces:
    """A vocabulary and the best way to cut a word with it."""

    def __init__(self, pieces: Sequence[str], scores: Sequence[float]) -> None:
        self.ids = {piece: i for i, piece in enumerate(pieces)}
        self._scores = scores
        self._longest = min(_LONGEST_PIECE, max(map(len, pieces), default=1))
        self.cut = lru_cache(maxsize=100_000)(self._cut)
        """Returns the pieces of a word; a known word is one piece."""

    def _cut(self, word: str) -> list[int]:
        word = word[:_LONGEST]
        known = self.ids.get(word)
        if known is not None:
            return [known]
        if _NUMBERED.fullmatch(word) or (len(word) < 2 and word.isascii()):
            return []
        if not word.isascii() and self._letters.isdisjoint(word):
            return []  # Cyrillic, Hangul and others: no piece is written like that
        return self._best_cut(word)

    def _best_cut(self, word: str) -> list[int]:
        get, scores, openings = self.ids.get, self._scores, self._openings
        size = len(word)
        best = [0.0] + [-1e9] * size
        back: list[tuple[int, int]] = [(0, -1)] * (size + 1)
        for start in range(size):
            so_far = best[start]
            if so_far + _UNKNOWN > best[start + 1]:
                best[start + 1], back[start + 1] = so_far + _UNKNOWN, (start, -1)
            # Few beginnings lead anywhere: most pieces need not be looked for.
            opening = word[start : start + _OPENING]
            reach = self._longest if opening in openings else _OPENING - 1
            for end in range(start + 1, min(size, start + reach) + 1):
                piece = get(word[start:end])
                if piece is not None and so_far + scores[piece] > best[end]:
                    best[end], back[end] = so_far + scores[piece], (start, piece)
        pieces = []
        at = size
        while at:
            at, piece = back[at]
            if piece >= 0:
                pieces.append(piece)
        return pieces[::-1]

    @cached_property
    def _openings(self) -> set[str]:
        return {piece[:_OPENING] for piece in self.ids}

    @cached_property
    def _letters(self) -> frozenset[str]:
        return frozenset("".join(self.ids))


class StaticVectors(VectorSpace):
    """The vectors of one packaged file; remembers every run of text it has met."""

    def __init__(self, path: Path) -> None:
        content = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
        if bytes(content[:4]) != MAGIC:
            raise ValueError(f"{path.name} is no vector file; install the package again")
        size = int.from_bytes(bytes(content[4:8]), "little")
        head = json.loads(bytes(content[8 : 8 + size]))
        at = 8 + size + head["vocabulary"]
        words = bytes(content[8 + size : at]).decode().split("\n")
        count, width = len(words), head["dimensions"]
        columns = content[at : at + 8 * count].view(np.float16).reshape(4, count)
        rows = content[at + 8 * count : at + (8 + width) * count].view(np.int8)
        self.name = head["name"]
        self._numbers: ByteVector = rows.reshape(count, width)
        scales = columns[0].astype(np.float32)
        self._question: Vector = columns[1].astype(np.float32) * scales
        self._document: Vector = columns[2].astype(np.float32) * scales
        self._vocabulary = Pieces(words, columns[3].astype(np.float32).tolist())
        self._piece_ids = lru_cache(maxsize=200_000)(self._find_piece_ids)
        self._lock = threading.Lock()
        """Held while rows of the table below are added and used: several threads encode."""
        self._rows: dict[str, int] = {}
        self._runs = np.zeros((_FIRST_RUNS, width), np.float32)

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        return int(self._numbers.shape[1])

    def _find_piece_ids(self, run: str) -> list[int]:
        return [i for word in words_of(run) for i in self._vocabulary.cut(word)]

    def pieces_of(self, run: str, parts: Sequence[str]) -> Sequence[int]:
        """Return the pieces of a run of text that is split into its parts already."""
        if not run.isascii() and _JAPANESE.match(run):
            return self._find_piece_ids(run)
        cut = self._vocabulary.cut
        return [i for word in parts[:_MOST_PARTS] for i in cut(word)]

    def piece_vectors(self, ids: NDArray[np.int64]) -> Vector:
        """Return what each piece adds to the meaning of a document."""
        vectors: Vector = self._numbers[ids].astype(np.float32)
        vectors *= self._document[ids][:, None]
        return vectors

    def pool(self, weights: Mapping[str, float]) -> Vector:
        """Return the vector of a question from its weighted runs."""
        ids: list[int] = []
        each: list[float] = []
        for run, weight in weights.items():
            own = self._piece_ids(run)
            ids += own
            each += [weight] * len(own)
        if not ids:
            return np.zeros(self.dimensions, np.float32)
        weighted: Vector = np.array(each, np.float32) * self._question[ids]
        return normalise(weighted @ self._numbers[ids].astype(np.float32))

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return one normalised vector per document, each run counted by the root of its number."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            counts = root_counts(text)
            if counts:
                weights = np.fromiter(counts.values(), np.float32, len(counts))
                out[i] = weights @ self.run_vectors(counts)
        return normalise(out)

    def encode_questions(self, texts: Sequence[str]) -> Vector:
        """Return one normalised vector per question."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            out[i] = self.pool(root_counts(text))
        return out

    def run_vectors(self, runs: Iterable[str]) -> Vector:
        """Return what each run of text adds to the meaning of a document."""
        with self._lock:
            if len(self._rows) > _MOST_RUNS:
                self._rows.clear()
            rows = [self._row(run) for run in runs]
            return self._runs[rows]

    def _row(self, run: str) -> int:
        row = self._rows.get(run)
        return self._add_row(run) if row is None else row

    def _add_row(self, run: str) -> int:
        row = len(self._rows)
        if row == len(self._runs):
            self._runs = np.concatenate([self._runs, np.zeros_like(self._runs)])
        self._runs[row] = self._sum(self._find_piece_ids(run))
        self._rows[run] = row
        return row

    def _sum(self, ids: Sequence[int]) -> Vector:
        weights, total = self._document, np.zeros(self.dimensions, np.float32)
        if len(ids) == 1:
            total = self._numbers[ids[0]] * weights[ids[0]]
        elif ids:
            total = weights[ids] @ self._numbers[ids].astype(np.float32)
        return total


def root_counts(text: str) -> dict[str, float]:
    """Return the runs of a text with the roots of their counts."""
    counts: dict[str, int] = {}
    for run in runs(fold(text)):
        counts[run] = counts.get(run, 0) + 1
    return {run: n**0.5 for run, n in counts.items()}


@lru_cache(maxsize=1)
def load_static_vectors() -> StaticVectors | None:
    """Return the packaged vectors, or ``None`` where their file is missing or broken."""
    limit_blas_threads()
    try:
        return StaticVectors(Path(str(files("evercontext.retrieval") / "data" / "vectors.bin")))
    except (OSError, ValueError):
        return None
