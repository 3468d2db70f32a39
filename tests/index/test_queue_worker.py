from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from evercontext.errors import NotFound
from evercontext.index.code_search import CodeIndex
from evercontext.index.location import FOLDER
from evercontext.index.queue_worker import drain, watch
from evercontext.index.update_queue import JobQueue
from evercontext.testing import git, tiny_repository
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


class _Watched:
    """A tree that is being watched, and a way to wait for what becomes of it."""

    def __init__(self, index: CodeIndex, tree: Path) -> None:
        self.index, self.tree = index, tree
        self.stop, self._told = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(watch(index, tree / FOLDER, self.stop, self._tell))

    def _tell(self, _: object) -> None:
        self._told.set()

    async def until(self, wanted: Callable[[set[str]], bool]) -> None:
        for _ in range(400):
            if wanted(set(await self.index.table.rows())):
                return
            self._told.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 0.5)
        raise AssertionError(f"not seen: {sorted(await self.index.table.rows())}")


@asynccontextmanager
async def _watched(tree: Path) -> AsyncIterator[_Watched]:
    async with opened(tree) as index:
        watched = _Watched(index, tree)
        await watched.until(bool)
        yield watched
        watched.stop.set()
        await watched.task
        await index.update()
        fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tree.parent / "again")


async def test_a_watched_tree_is_followed(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", SHOP)
    async with _watched(tree) as watched:
        names = {"shop/new.py", "shop/cart.py"}
        write(tree, dict.fromkeys(names, "def watched(): pass\n"))
        (tree / "README.md").unlink()
        await watched.until(lambda rows: names <= rows and "README.md" not in rows)
        # As editors save: a new file takes the old one's place.
        write(tree, {"shop/.cart.py.tmp": "def saved_whole(): pass\n"})
        (tree / "shop/.cart.py.tmp").replace(tree / "shop/cart.py")
        (tree / "shop/payment.py").rename(tree / "shop/money.py")
        await watched.until(lambda rows: "shop/money.py" in rows and "shop/payment.py" not in rows)
        assert (await watched.index.search("saved_whole")).hits[0].path == "shop/cart.py"


async def test_folders_that_go_and_come_are_followed(tmp_path: Path) -> None:
    tree = write(
        tmp_path / "tree", {**SHOP, "pack.age/a.py": "x = 1\n", "pack.age/b.py": "x = 2\n"}
    )
    async with _watched(tree) as watched:
        (tree / "pack.age").rename(tmp_path / "elsewhere")
        await watched.until(lambda rows: not any(row.startswith("pack.age") for row in rows))
        (tmp_path / "elsewhere").rename(tree / "shop/back.again")
        await watched.until(lambda rows: "shop/back.again/b.py" in rows)
        shutil.rmtree(tree / "shop")
        await watched.until(lambda rows: not any(row.startswith("shop") for row in rows))


async def test_ignore_files_count_while_they_change(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", {"a.py": "x = 1\n"})
    write(tree, {"local/b.py": "x = 2\n", "c.py": "x = 3\n"})
    async with _watched(tree) as watched:
        write(tree, {".gitignore": "local/\n"})
        await watched.until(lambda rows: rows == {"a.py", "c.py"})
        write(tree, {".evercontextignore": "c.py\n"})
        await watched.until(lambda rows: rows == {"a.py"})
        (tree / ".gitignore").unlink()
        await watched.until(lambda rows: rows == {"a.py", "local/b.py"})


async def test_another_branch_of_500_files_is_followed(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", {f"m{i}.py": f"x = {i}\n" for i in range(300)})
    git(tree, "checkout", "-q", "-b", "other")
    for i in range(250):
        (tree / f"m{i}.py").rename(tree / f"n{i}.py")
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "other")
    async with _watched(tree) as watched:
        git(tree, "checkout", "-q", "main")
        await watched.until(lambda rows: rows == {f"m{i}.py" for i in range(300)})


async def test_a_tree_that_is_gone_ends_the_watch(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a.py": "x = 1\n"})
    async with opened(tree, tmp_path / "index") as index:
        task = asyncio.create_task(watch(index, tmp_path / "index", asyncio.Event()))
        for _ in range(600):
            if await index.table.rows():
                break
            await asyncio.sleep(0.1)
        shutil.rmtree(tree)
        with pytest.raises(NotFound, match="gone"):
            await asyncio.wait_for(task, 30)
