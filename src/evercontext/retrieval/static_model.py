"""Our own word vectors: code, English and Japanese in one space, from one packaged file.

The file is mapped, not read: a word's numbers are fetched when it is first met. A text is the sum
of its words; each piece of a word has one learned weight for questions and one for documents,
because "the" means nothing in either but "return" means something only in a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evercontext.retrieval.tokens import fold, runs, split_identifier

Vector = NDArray[np.float32]
Ids = NDArray[np.int64]
MAGIC = b"ECV1"
_JAPANESE = re.compile(
    r"[\u30a1-\u30ff\uff66-\uff9f]+|[\u3005\u3400-\u9fff\uf900-\ufaff]+[\u3041-\u309f]{0,3}"
    r"|[\u3041-\u309f]+|[\uac00-\ud7a3]+"
)
_LONGEST = 40
_MOST_PARTS = 12
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
        self._longest = max(map(len, pieces), default=1)

    def cut(self, word: str) -> list[int]:
        """Return the pieces of a word; a known word is one piece."""
        word = word[:_LONGEST]
        known = self.ids.get(word)
        if known is not None:
            return [known]
        if word.isdigit() or (len(word) < 2 and word.isascii()):
            return []
        return self._best_cut(word)

    def _best_cut(self, word: str) -> list[int]:
        size = len(word)
        best = [0.0] + [-1e9] * size
        back: list[tuple[int, int]] = [(0, -1)] * (size + 1)
        for end in range(1, size + 1):
            best[end], back[end] = best[end - 1] + _UNKNOWN, (end - 1, -1)
            for start in range(max(0, end - self._longest), end):
                piece = self.ids.get(word[start:end])
                if piece is not None and best[start] + self._scores[piece] > best[end]:
                    best[end], back[end] = best[start] + self._scores[piece], (start, piece)
        found = []
        at = size
        while at:
            at, piece = back[at]
            if piece >= 0:
                found.append(piece)
        return found[::-1]


class StaticModel:
    """Vectors of the packaged file; remembers every run of text it has met."""

    def __init__(self, path: Path) -> None:
        content = np.memmap(path, np.uint8, mode="r")
        if bytes(content[:4]) != MAGIC:
            raise ValueError(f"{path.name} is no vector file; install the package again")
        size = int.from_bytes(bytes(content[4:8]), "little")
        head = json.loads(bytes(content[8 : 8 + size]))
        at = 8 + size
        words = bytes(content[at : at + head["vocabulary"]]).decode().split("\n")
        at += head["vocabulary"]
        count, width = len(words), head["dimensions"]
        columns = content[at : at + 8 * count].view(np.float16).reshape(4, count)
        self.name: str = head["name"]
        self._scales = columns[0].astype(np.float32)
        self._question, self._document = columns[1], columns[2]
        self._table: NDArray[np.int8] = content[at + 8 * count :].view(np.int8)
        self._table = self._table[: count * width].reshape(count, width)
        self._pieces = Pieces(words, columns[3].astype(np.float32).tolist())
        self._rows: dict[str, int] = {}
        self._words = np.zeros((1024, width), np.float32)
        self._cut = lru_cache(maxsize=200_000)(self._ids_of)

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        return int(self._table.shape[1])

    def _ids_of(self, run: str) -> tuple[int, ...]:
        return tuple(i for word in words_of(run) for i in self._pieces.cut(word))

    def _sum(self, ids: Iterable[int], weights: NDArray[np.float16]) -> Vector:
        chosen = np.fromiter(ids, np.int64)
        scale = weights[chosen].astype(np.float32) * self._scales[chosen]
        total: Vector = scale @ self._table[chosen].astype(np.float32)
        return total

    def rows(self, found: Sequence[str]) -> Ids:
        """Return the rows of runs in ``matrix()``; a new run gets its row on first sight."""
        return np.fromiter((self.row(run) for run in found), np.int64, len(found))

    def row(self, run: str) -> int:
        """Return the row of one run, as a part of a document."""
        known = self._rows.get(run)
        return self._learn(run) if known is None else known

    def matrix(self) -> Vector:
        """All rows known so far; the view is good until the next new run."""
        return self._words

    def _learn(self, run: str) -> int:
        row = len(self._rows)
        if row == len(self._words):
            self._words = np.concatenate([self._words, np.zeros_like(self._words)])
        ids = self._cut(run)
        if ids:
            self._words[row] = self._sum(ids, self._document)
        self._rows[run] = row
        return row

    def pool(self, weights: Mapping[str, float]) -> Vector:
        """Return the vector of a question from its weighted runs."""
        total = np.zeros(self.dimensions, np.float32)
        for run, weight in weights.items():
            ids = self._cut(run)
            if ids:
                total += np.float32(weight) * self._sum(ids, self._question)
        return normalise(total)

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return one normalised vector per document, each run counted by the root of its number."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for i, text in enumerate(texts):
            counts = root_counts(text)
            rows = self.rows(list(counts))
            if len(rows):
                out[i] = np.fromiter(counts.values(), np.float32) @ self._words[rows]
        return normalise(out)

    def encode_questions(self, texts: Sequence[str]) -> Vector:
        """Return one normalised vector per question."""
        return np.stack([self.pool(root_counts(text)) for text in texts])


def root_counts(text: str) -> dict[str, float]:
    """Return the runs of a text with the roots of their counts."""
    counts: dict[str, int] = {}
    for run in runs(fold(text)):
        counts[run] = counts.get(run, 0) + 1
    return {run: n**0.5 for run, n in counts.items()}


def normalise(vectors: Vector) -> Vector:
    """Return vectors of length one; zero stays zero."""
    length = np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True))
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


@lru_cache(maxsize=1)
def load_static_model() -> StaticModel | None:
    """Return the packaged model, or ``None`` where its file is missing or broken."""
    try:
        return StaticModel(Path(str(files("evercontext.retrieval") / "data" / "vectors.bin")))
    except (OSError, ValueError):
        return None
