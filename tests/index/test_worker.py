from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evercontext.index.folder import FOLDER
from evercontext.index.queue import JobQueue
from evercontext.index.worker import drain, watch
from tests.index.world import SHOP, fingerprint_of_rebuild, opened, write


@pytest.mark.case(129)
async def test_an_event_for_a_deleted_file_prunes_it(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        await index.update()
        (tmp_path / "shop/cart.py").unlink()
        queue = JobQueue(index.table.store)
        await queue.add(["shop/cart.py", "never/was.py"])
        reports = await drain(index, tmp_path / FOLDER)
        assert [r.deleted for r in reports] == [1]
        assert await queue.waiting() == []
        assert "shop/cart.py" not in await index.table.rows()


@pytest.mark.case(128)
async def test_paths_wait_while_another_one_indexes(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        queue = JobQueue(second.table.store)
        await queue.add(["shop/cart.py"])
        async with first.indexer.lease.hold():
            assert await drain(second, tmp_path / FOLDER, patience=0) == []
        assert await queue.waiting() == ["shop/cart.py"]
        assert [r.added for r in await drain(second, tmp_path / FOLDER)] == [1]


async def test_a_watched_tree_is_followed(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    async with opened(tree) as index:
        await index.update()
        stop, followed = asyncio.Event(), asyncio.Event()
        names = {"shop/new.py", "shop/cart.py"}

        def told(_: object) -> None:
            followed.set()

        task = asyncio.create_task(watch(index, tree / FOLDER, stop, told))
        await asyncio.sleep(0.5)
        write(tree, dict.fromkeys(names, "def watched(): pass\n"))
        (tree / "README.md").unlink()
        for _ in range(40):
            await asyncio.wait_for(followed.wait(), 20)
            followed.clear()
            rows = await index.table.rows()
            if names <= set(rows) and "README.md" not in rows:
                break
        stop.set()
        await task
        await index.update()
        fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tmp_path / "again")
