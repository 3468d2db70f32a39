"""Full and read-only file systems, and power cuts: real ones, so only root can make them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evercontext.errors import DiskFull, ReadOnlyTree
from evercontext.files.file_tree import Tree, WriteMode
from evercontext.files.policy import gateway_policy
from tests.programs import program

HERE = Path(__file__).resolve().parents[2]
_CUT = """
import json, sys
from pathlib import Path
from tests.hostile.attackers import cut_power_repeatedly
print(json.dumps(cut_power_repeatedly(Path(sys.argv[1]), 2)))
"""
T = "44444444-4444-4444-8444-444444444444"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/bin/mount").exists(), reason="mounting needs root"
)


@contextmanager
def mounted(where: Path, *options: str) -> Iterator[None]:
    where.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(where)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mount is refused here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.mark.case(47)
@pytest.mark.parametrize("home_is_full", [False, True])
def test_disk_full(tmp_path: Path, home_is_full: bool) -> None:
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    roomy.mkdir()
    with mounted(full, "-t", "tmpfs", "-o", "size=256k", "tmpfs"):
        place, home = (roomy, full) if home_is_full else (full, roomy)
        tree = Tree.open(place, gateway_policy(), home)
        tree.write("a.txt", "old", trace_id=T)
        if home_is_full:
            (place / "a.txt").write_text("o" * 400_000)
            with pytest.raises(DiskFull):
                tree.write("a.txt", "new", trace_id=T)
            assert (place / "a.txt").read_text() == "o" * 400_000
        else:
            for mode in (WriteMode.OVERWRITE, WriteMode.APPEND):
                with pytest.raises(DiskFull):
                    tree.write("a.txt", "x" * 400_000, mode, trace_id=T)
            with pytest.raises(DiskFull):
                tree.write("n/new.txt", "x" * 400_000, WriteMode.CREATE, trace_id=T)
            assert (place / "a.txt").read_text() == "old"
            assert os.listdir(place) == ["a.txt"]
            tree.write("a.txt", "fits", trace_id=T)
            assert tree.read("a.txt").content == "fits"
        tree.close()


@pytest.mark.case(49)
def test_read_only(tmp_path: Path) -> None:
    place, home = tmp_path / "ro", tmp_path / "home"
    with mounted(place, "-t", "tmpfs", "tmpfs"):
        (place / "a.txt").write_text("old")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        tree = Tree.open(place, gateway_policy(), home)
        for path in ("a.txt", "new.txt", "d/new.txt"):
            with pytest.raises(ReadOnlyTree, match="read-only"):
                tree.write(path, "x", trace_id=T)
        with pytest.raises(ReadOnlyTree):
            tree.delete("a.txt", trace_id=T)
        assert tree.read("a.txt").content == "old"
        tree.close()


@pytest.mark.case(52)
@pytest.mark.slow
def test_power_cuts(tmp_path: Path) -> None:
    if not Path("/dev/loop-control").exists():
        pytest.skip("no loop devices here")
    program("mkfs.ext4")
    # In a mount namespace of its own: one that was made meanwhile, by a sandbox or a container,
    # would hold the disk that went dark, and then it could not be mounted again.
    words = [program("unshare"), "--mount", sys.executable, "-c", _CUT, str(tmp_path)]
    done = subprocess.run(words, cwd=HERE, capture_output=True, text=True, check=False)
    if "loop device" in done.stderr or done.stderr.startswith("unshare:"):
        pytest.skip(f"no disk of our own can be had here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    total, wrong = json.loads(done.stdout)
    assert wrong == []
    assert total >= 2
