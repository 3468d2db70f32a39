"""The index on disks, clocks and trees that mean no good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evercontext.index.git_hook import install
from evercontext.index.location import FOLDER
from evercontext.testing import git, tiny_repository
from tests.hostile.test_mounts import mounted
from tests.index.world import SHOP, fingerprint_of_rebuild, opened, write

_ROOT = os.geteuid() == 0 and Path("/bin/mount").exists()


@pytest.mark.case(121, 126)
@pytest.mark.skipif(not _ROOT, reason="mounting needs root")
async def test_on_a_full_disk_what_is_known_is_still_found(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", SHOP)
    with mounted(tree / FOLDER, "-t", "tmpfs", "-o", "size=3m", "tmpfs"):
        (tree / FOLDER / ".gitignore").write_text("*\n", "utf-8")
        await install(tree, program="/nonexistent")
        async with opened(tree) as index:
            await index.update()
            filler = tree / FOLDER / "filler"
            with pytest.raises(OSError, match="space"):
                filler.write_bytes(b"x" * 4_000_000)
            # More than fits into what the write-ahead log has already.
            many = "\n".join(f"def fresh_function_{i}(): return '{i * 7919}'" for i in range(9_000))
            write(tree, {"later.py": many})
            index._looked = 0.0
            answer = await index.search("charge a card")
            assert answer.hits[0].path == "shop/payment.py"
            assert answer.stale
            assert "full" in (answer.note or "")
            git(tree, "add", "--all")
            git(tree, "commit", "-qm", "a full disk stops no commit")
            filler.unlink()
            await index.update()
            assert (await index.search("fresh_function_77")).hits[0].path == "later.py"
            fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tmp_path / "again")


@pytest.mark.case(128)
async def test_no_clock_hides_a_change(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    async with opened(tmp_path) as index:
        for year, name in ((-9, "first"), (70, "third"), (70, "forth"), (-9, "fifth")):
            file.write_text(f"def {name}(): pass\n", "utf-8")
            moment = year * 31_536_000
            os.utime(file, (moment, moment))
            time.sleep(0.06)
            await index.update()
            assert (await index.search(name, fresh=False)).hits[0].symbol == name


async def test_loops_pipes_and_unreadable_places_are_passed_by(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"real.py": "def real(): pass\n", "shut/in.py": "x = 1\n"})
    (tree / "self").symlink_to(".")
    (tree / "up").symlink_to("../tree")
    (tree / "nowhere.py").symlink_to("gone.py")
    (tree / "outside.py").symlink_to("/etc/hostname")
    os.mkfifo(tree / "pipe.py")
    (tree / "shut").chmod(0)
    try:
        async with opened(tree) as index:
            await index.update()
            rows = set(await index.table.rows())
    finally:
        (tree / "shut").chmod(0o755)
    assert "real.py" in rows
    assert rows <= {"real.py", "shut/in.py"}


@pytest.mark.case(127)
async def test_a_sparse_checkout_shows_what_is_there(tmp_path: Path) -> None:
    tree = tiny_repository(
        tmp_path, {"near/a.py": "def near(): pass\n", "far/b.py": "def far(): pass\n"}
    )
    async with opened(tree) as index:
        await index.update()
        git(tree, "sparse-checkout", "set", "near")
        await index.update()
        assert set(await index.table.rows()) == {"near/a.py"}
        git(tree, "sparse-checkout", "disable")
        report = await index.update()
        assert (report.added, set(await index.table.rows())) == (1, {"near/a.py", "far/b.py"})


_INDEX = [sys.executable, "-c", "from evercontext.cli.main import main; main()", "index"]


@pytest.mark.slow
@pytest.mark.case(128)
async def test_two_indexers_and_a_killed_one_leave_one_whole_index(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree", {f"m{i}.py": f"def work_{i}(): return {i}\n" for i in range(900)}
    )
    first = subprocess.Popen([*_INDEX, "--root", str(tree)], stderr=subprocess.DEVNULL)
    second = subprocess.Popen([*_INDEX, "--root", str(tree)], stderr=subprocess.DEVNULL)
    for _ in range(400):
        if (tree / FOLDER / "index.db").exists():
            break
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert second.wait(90) == 0
    third = subprocess.run([*_INDEX, "--root", str(tree)], capture_output=True, timeout=90)
    assert third.returncode == 0, third.stderr
    # Indexes by the command have vectors; taken as they are, they must be whole.
    from evercontext.index.code_search import CodeIndex

    index = await CodeIndex.open(tree)
    try:
        assert len(await index.indexer.pending()) == 0
        assert len(await index.table.rows()) == 900
    finally:
        await index.close()
