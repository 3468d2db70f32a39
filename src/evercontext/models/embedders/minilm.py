"""all-MiniLM-L6-v2 in this process: six layers of attention in numpy, no other runtime needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evercontext.domain.model import Embedded
from evercontext.errors import ModelProblem, ModelUnknown
from evercontext.models.embedded.weights import MINILM, Weights, is_pulled, stored_at
from evercontext.models.embedders.wordpiece import cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

_LAYERS, _HEADS, _WIDTH = 6, 12, 32
_MOST_PIECES = 256
_TINY = 1e-12


class MiniLM:
    """The model, loaded when the first text comes."""

    name = "minilm"
    local = True

    def __init__(self, home: Path, published: Weights = MINILM) -> None:
        if not is_pulled(home, published):
            raise ModelUnknown("MiniLM is not on this machine", fix=f"Run: {MINILM.pull_command}")
        self._published = published
        self._file = stored_at(home, published)
        self._weights: dict[str, Matrix] = {}
        self._busy = asyncio.Lock()

    def price(self, tokens: int) -> float | None:
        """Return nothing: it runs here."""
        return 0.0

    async def aclose(self) -> None:
        """Forget the weights."""
        self._weights = {}

    async def embed(self, texts: Sequence[str], *, question: bool = False) -> Embedded:
        """Return one vector per text; questions are read like documents."""
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        async with self._busy:
            if not self._weights:
                await asyncio.to_thread(self._published.verify, self._file)
                self._weights = await asyncio.to_thread(_load, self._file)
            # Several threads would wait for each other longer than they work.
            with threadpool_limits(1):
                vectors = [await asyncio.to_thread(self._vector, text) for text in texts]
        return Embedded(vectors)

    def _vector(self, text: str) -> list[float]:
        import numpy as np

        ids = cut(text, _MOST_PIECES)
        table = self._weights
        x = table["embeddings.word_embeddings.weight"][ids]
        x = x + table["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + table["embeddings.token_type_embeddings.weight"][0]
        x = self._level(x, "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            x = self._layer(x, f"encoder.layer.{layer}.")
        mean = x.mean(axis=0)
        vector: list[float] = (mean / max(float(np.linalg.norm(mean)), _TINY)).tolist()
        return vector

    def _layer(self, x: Matrix, at: str) -> Matrix:
        mixed = self._line(self._attend(x, at + "attention.self."), at + "attention.output.dense")
        x = self._level(x + mixed, at + "attention.output.LayerNorm")
        grown = _gelu(self._line(x, at + "intermediate.dense"))
        return self._level(x + self._line(grown, at + "output.dense"), at + "output.LayerNorm")

    def _attend(self, x: Matrix, at: str) -> Matrix:
        import numpy as np

        parts = (self._line(x, at + name) for name in ("query", "key", "value"))
        q, k, v = (p.reshape(len(x), _HEADS, _WIDTH).transpose(1, 0, 2) for p in parts)
        scores = q @ k.transpose(0, 2, 1) / np.float32(_WIDTH**0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
        joined: Matrix = mixed.transpose(1, 0, 2).reshape(len(x), _HEADS * _WIDTH)
        return joined

    def _line(self, x: Matrix, name: str) -> Matrix:
        return x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _level(self, x: Matrix, name: str) -> Matrix:
        import numpy as np

        x = x - x.mean(axis=-1, keepdims=True)
        scaled = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(_TINY))
        levelled: Matrix = scaled * self._weights[name + ".weight"] + self._weights[name + ".bias"]
        return levelled


def _gelu(x: Matrix) -> Matrix:
    """The exact curve; its error function by Abramowitz and Stegun 7.1.26, good to 1.5e-7."""
    import numpy as np

    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1.0 / (1.0 + np.float32(0.3275911) * z)
    poly = np.full_like(t, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = poly * t + np.float32(factor)
    erf = np.copysign(1.0 - poly * t * np.exp(-z * z), x)
    curve: Matrix = np.float32(0.5) * x * (1.0 + erf)
    return curve


def _load(file: Path) -> dict[str, Matrix]:
    """Map the tensors of a safetensors file."""
    import numpy as np

    content = np.memmap(file, np.uint8, mode="r")
    size = int.from_bytes(bytes(content[:8]), "little")
    try:
        head = json.loads(bytes(content[8 : 8 + size]))
    except ValueError:
        raise ModelProblem(f"{file.name} is no weights file") from None
    tensors: dict[str, Matrix] = {}
    for name, about in head.items():
        if about.get("dtype") == "F32":
            start, end = (8 + size + at for at in about["data_offsets"])
            tensors[name] = content[start:end].view(np.float32).reshape(about["shape"])
    return tensors
