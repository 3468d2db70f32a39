from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.errors import StoreBusy
from evercontext.index.code_search import CodeIndex
from evercontext.testing import git, tiny_repository
from tests.index.world import SHOP, fingerprint_of_rebuild, opened, write

WORDS = ["alpha", "beta", "gamma", "delta", "認証", "omega"]


def _content(dice: random.Random) -> str:
    names = dice.sample(WORDS, 2)
    return f"def {names[0]}_{dice.randrange(9)}():\n    return '{names[1]}'\n" * dice.randint(1, 4)


def _change(root: Path, dice: random.Random) -> None:
    files = sorted(p for p in root.rglob("*.py") if ".evercontext" not in p.parts)
    act = dice.choice(["add", "add", "change", "delete", "rename", "move", "copy"])
    target = root / f"d{dice.randrange(3)}" / f"f{dice.randrange(30)}.py"
    target.parent.mkdir(exist_ok=True)
    if act == "add" or not files:
        target.write_text(_content(dice), "utf-8")
    elif act == "change":
        dice.choice(files).write_text(_content(dice), "utf-8")
    elif act == "delete":
        dice.choice(files).unlink()
    elif act in ("rename", "move"):
        dice.choice(files).rename(target)
    else:
        target.write_bytes(dice.choice(files).read_bytes())


@pytest.mark.contract("E46")
@pytest.mark.parametrize("seed", range(25))
async def test_any_history_gives_the_index_of_a_rebuild(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    tree = write(tmp_path / "tree", {"a.py": "def first():\n    pass\n"})
    async with opened(tree) as index:
        for _ in range(4):
            for _ in range(dice.randint(1, 5)):
                _change(tree, dice)
            if dice.random() < 0.3:
                changed = [p.relative_to(tree).as_posix() for p in tree.rglob("*.py")]
                await index.update(changed)
            await index.update()
        fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tmp_path / "again")


@pytest.mark.contract("E39")
async def test_a_renamed_tree_embeds_nothing(tmp_path: Path) -> None:
    files = {f"old/m{i}.py": f"def work_{i}():\n    return {i}\n" for i in range(100)}
    tree = tiny_repository(tmp_path, files)
    index = await CodeIndex.open(tree)
    try:
        assert (await index.update()).embedded == 100
        git(tree, "mv", "old", "new")
        git(tree, "commit", "-qm", "move")
        report = await index.update()
        assert (report.embedded, report.added, report.deleted, report.renamed) == (0, 100, 100, 100)
        assert (await index.search("work_42")).hits[0].path == "new/m42.py"
    finally:
        await index.close()


async def test_a_touched_file_is_not_analysed_again(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        (tmp_path / "shop/cart.py").touch()
        report = await index.update()
    assert report.touched == 0


async def test_a_change_within_one_clock_tick_is_seen(tmp_path: Path) -> None:
    import os

    path = tmp_path / "a.py"
    async with opened(tmp_path) as index:
        path.write_text("def one(): pass\n", "utf-8")
        before = path.stat()
        await index.update()
        path.write_text("def two(): pass\n", "utf-8")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        await index.update()
        assert (await index.search("two")).hits[0].symbol == "two"


@pytest.mark.case(128)
async def test_only_one_indexer_works_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        async with first.indexer.lease.hold():
            with pytest.raises(StoreBusy, match="another process"):
                await second.update()
        assert (await second.update()).added == len(SHOP)


_KILLED = """
import asyncio, sys
from pathlib import Path
from evercontext.index import indexer
from evercontext.index.code_search import CodeIndex
indexer.BATCH = 4
async def main():
    index = await CodeIndex.open(Path(sys.argv[1]), use_vectors=False)
    print("ready", flush=True)
    await index.update(progress=lambda done, total: print(done, flush=True))
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.case(128)
@pytest.mark.contract("E46")
async def test_a_killed_indexer_leaves_whole_batches_and_the_next_one_finishes(
    tmp_path: Path,
) -> None:
    tree = write(
        tmp_path / "tree", {f"m{i}.py": f"def work_{i}(): return {i}\n" for i in range(40)}
    )
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tree)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == "12":
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    async with opened(tree) as index:
        rows = await index.table.rows()
        assert len(rows) % 4 == 0
        await index.update()
        fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tmp_path / "again")


async def test_two_updates_in_one_process_take_turns(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        first, second = await asyncio.gather(index.update(), index.update())
    assert sorted([first.added, second.added]) == [0, len(SHOP)]


async def test_pruned_files_are_gone(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        report = await index.prune(["shop"])
        assert report.deleted == 2
        assert "shop/cart.py" not in await index.table.rows()


async def test_an_index_of_another_maker_is_built_anew(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
    with_vectors = await CodeIndex.open(tmp_path)
    try:
        assert (await with_vectors.update()).added == len(SHOP)
    finally:
        await with_vectors.close()
