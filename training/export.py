"""Write trained vectors as the one file that the package carries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evercontext.retrieval.static_vectors import MAGIC


def _array(values: Any) -> np.ndarray:
    return np.asarray(
        values.detach().float().cpu() if hasattr(values, "detach") else values, np.float32
    )


def write_model(
    path: Path,
    name: str,
    words: Sequence[str],
    scores: Sequence[float],
    table: Any,
    question: Any,
    document: Any,
) -> None:
    """Write int8 rows, and per piece a scale, two weights and a score in half precision."""
    rows, ask, tell = _array(table), _array(question), _array(document)
    length = np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-9)
    rows, ask, tell = rows / length, ask * length[:, 0], tell * length[:, 0]
    middle = float(np.median(ask))
    ask, tell = ask / middle, tell / middle
    scale = np.abs(rows).max(axis=1, keepdims=True).clip(1e-9) / 127
    whole = np.rint(rows / scale).astype(np.int8)
    vocabulary = "\n".join(words).encode()
    head = {"name": name, "dimensions": rows.shape[1], "vocabulary": len(vocabulary)}
    text = json.dumps(head).encode()
    columns = np.stack([scale[:, 0], ask, tell, np.asarray(scores, np.float32)]).astype(np.float16)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        MAGIC
        + len(text).to_bytes(4, "little")
        + text
        + vocabulary
        + columns.tobytes()
        + whole.tobytes()
    )
