from __future__ import annotations

from pathlib import Path

from evercontext.index import corpus_snapshot
from evercontext.index.corpus_snapshot import FILE
from tests.index.world import opened, write

FILES = {f"m{i}.py": f"def work_{i}(thing):\n    return thing + {i}\n" for i in range(120)}


async def _first(root: Path, folder: Path, query: str) -> str:
    async with opened(root, folder) as index:
        return (await index.search(query, 1)).hits[0].path


async def test_a_second_search_maps_what_the_first_one_built(tmp_path: Path) -> None:
    tree, folder = write(tmp_path / "tree", FILES), tmp_path / "index"
    async with opened(tree, folder) as index:
        await index.update()
        assert not (folder / FILE).exists()
        await index.search("work_3")
    made = (folder / FILE).stat()
    assert await _first(tree, folder, "work_7") == "m7.py"
    assert (folder / FILE).stat().st_mtime_ns == made.st_mtime_ns


async def test_changes_after_the_snapshot_are_found(tmp_path: Path) -> None:
    tree, folder = write(tmp_path / "tree", FILES), tmp_path / "index"
    async with opened(tree, folder) as index:
        await index.update()
        await index.search("work")
    (tree / "m5.py").write_text("def giraffe():\n    pass\n", "utf-8")
    (tree / "m6.py").unlink()
    assert await _first(tree, folder, "giraffe") == "m5.py"
    assert await _first(tree, folder, "work_6") != "m6.py"


async def test_many_changes_make_a_new_snapshot(tmp_path: Path) -> None:
    tree, folder = write(tmp_path / "tree", FILES), tmp_path / "index"
    async with opened(tree, folder) as index:
        await index.update()
        await index.search("work")
    before = (folder / FILE).stat().st_ino
    write(tree, {name: text + "# more\n" for name, text in FILES.items()})
    async with opened(tree, folder) as index:
        await index.update()
        assert (await index.search("work_9", 1)).hits[0].path == "m9.py"
    assert (folder / FILE).stat().st_ino != before


async def test_a_snapshot_of_a_deleted_index_is_not_believed(tmp_path: Path) -> None:
    tree, folder = write(tmp_path / "tree", FILES), tmp_path / "index"
    async with opened(tree, folder) as index:
        await index.update()
        await index.search("work")
    for file in folder.glob("index.db*"):
        file.unlink()
    write(tree, {"m1.py": "def hippo():\n    pass\n"})
    async with opened(tree, folder) as index:
        await index.update()
        assert (await index.search("hippo", 1)).hits[0].path == "m1.py"


async def test_a_small_tree_has_no_snapshot(tmp_path: Path) -> None:
    tree, folder = write(tmp_path / "tree", {"a.py": "def apple(): pass\n"}), tmp_path / "index"
    assert await _first(tree, folder, "apple") == "a.py"
    assert not (folder / corpus_snapshot.FILE).exists()
