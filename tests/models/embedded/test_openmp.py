from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.errors import LibraryMissing
from evercontext.models.embedded import openmp
from evercontext.models.embedded.registry import Registry

LACKING = openmp.is_lacking()
only_there = pytest.mark.skipif(not LACKING, reason="this system has libgomp.so.1")
only_here = pytest.mark.skipif(LACKING, reason="this system has no libgomp.so.1")


@only_here
async def test_a_system_that_has_the_library_is_brought_none(tmp_path: Path) -> None:
    registry = Registry(python="/nowhere/python", uv="/nowhere/uv")
    await openmp.bring(tmp_path, registry)
    assert openmp.is_at_hand(tmp_path)
    assert list(tmp_path.iterdir()) == []


@only_there
@pytest.mark.embedded
def test_without_a_registry_the_package_to_install_is_named(smollm2: Path) -> None:
    """S1: where nothing can be brought, the error names the library and its package."""
    for brought in smollm2.parent.glob("libgomp*"):
        brought.unlink()
    # A program of its own: another test may have loaded the library into this process.
    done = subprocess.run(
        [Path(sys.executable).with_name("evercontext"), "model", "pull", "smollm2"],
        env={**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "a system library is missing: libgomp.so.1 (pykdtree 1.4.3 could not" in done.stderr
    assert "sudo apt-get install libgomp1" in done.stderr


@only_there
@pytest.mark.embedded
def test_the_library_that_was_brought_is_taken_for_the_systems(smollm2: Path) -> None:
    """S1: a bare system runs the embedded model, and nothing is installed for it."""
    script = "import sys; from pathlib import Path; from evercontext.models.embedded import openmp;"
    script += " openmp.preload(Path(sys.argv[1])); import xllamacpp; print('loaded')"
    words = [sys.executable, "-c", script, str(smollm2.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("loaded\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a library")
async def test_a_file_that_was_changed_is_not_loaded(tmp_path: Path) -> None:
    for library in openmp._BY_MACHINE.values():
        (tmp_path / library.file).write_bytes(bytes(library.size))
    with pytest.raises(LibraryMissing, match="apt-get install libgomp1"):
        await asyncio.to_thread(openmp.preload, tmp_path)
