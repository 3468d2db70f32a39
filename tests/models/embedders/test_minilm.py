from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evercontext.errors import ModelProblem, ModelUnknown
from evercontext.models.embedded.weights import MINILM, Weights, digest, stored_at
from evercontext.models.embedders.minilm import MiniLM
from evercontext.models.embedders.wordpiece import cut


def _small_model(home: Path) -> tuple[Weights, NDArray[np.float32]]:
    """A file of the same shape whose layers change nothing: only the words' own rows speak."""
    dice = np.random.default_rng(7)
    words = dice.normal(size=(30_522, 384)).astype(np.float32)
    tensors = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": np.zeros((512, 384), np.float32),
        "embeddings.token_type_embeddings.weight": np.zeros((2, 384), np.float32),
    }
    levels = ["embeddings.LayerNorm"]
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        levels += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
        shapes = {"intermediate.dense": (1536, 384), "output.dense": (384, 1536)}
        for name in ("query", "key", "value"):
            shapes[f"attention.self.{name}"] = (384, 384)
        shapes["attention.output.dense"] = (384, 384)
        for name, shape in shapes.items():
            tensors[f"{at}{name}.weight"] = np.zeros(shape, np.float32)
            tensors[f"{at}{name}.bias"] = np.zeros(shape[0], np.float32)
    for name in levels:
        tensors[name + ".weight"] = np.ones(384, np.float32)
        tensors[name + ".bias"] = np.zeros(384, np.float32)
    head: dict[str, object] = {}
    end = 0
    for name, tensor in tensors.items():
        head[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.nbytes],
        }
        end += tensor.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    file = stored_at(home, MINILM)
    file.parent.mkdir(parents=True)
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return replace(MINILM, size=file.stat().st_size, sha256=digest(file)), words


async def test_a_text_is_the_mean_of_its_levelled_pieces(tmp_path: Path) -> None:
    published, words = _small_model(tmp_path)
    model = MiniLM(tmp_path, published)
    found = (await model.embed(["charge a card"])).vectors[0]
    await model.aclose()
    rows = words[cut("charge a card", 256)]
    levelled = (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True)
    mean = levelled.mean(0)
    assert np.allclose(found, mean / np.linalg.norm(mean), atol=1e-5)


async def test_a_damaged_file_is_not_used(tmp_path: Path) -> None:
    published, _ = _small_model(tmp_path)
    with stored_at(tmp_path, MINILM).open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    with pytest.raises(ModelProblem, match="damaged"):
        await MiniLM(tmp_path, published).embed(["x"])


def test_a_missing_file_names_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(ModelUnknown, match="model pull minilm"):
        MiniLM(tmp_path)


@pytest.mark.embedded
async def test_the_real_model_finds_what_its_makers_published(minilm: Path) -> None:
    model = MiniLM(minilm)
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    found = np.array((await model.embed(texts)).vectors)
    await model.aclose()
    near = found @ found.T
    assert np.allclose([near[0, 1], near[0, 2], near[1, 2]], [0.6660, 0.1046, 0.1411], atol=1e-3)
