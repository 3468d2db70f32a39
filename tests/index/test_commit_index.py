from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.index import git_hook
from evercontext.index.chunk_table import committed, name_of_commit
from evercontext.index.code_search import CodeIndex
from evercontext.index.commit_index import CommitIndexer
from evercontext.index.location import FOLDER, prepare_folder
from evercontext.index.queue_worker import drain
from evercontext.testing import git, tiny_repository
from tests.index.world import SHOP, fingerprint_of_rebuild, opened, write

STAGED = "def what_was_staged():\n    return 'committed'\n"
LATER = "def what_came_later():\n    return 'still being written, and longer'\n"


async def _blobs(index: CodeIndex) -> dict[str, str]:
    return {path: row.blob for path, row in (await committed(index.table.store)).items()}


def _in_head(tree: Path) -> dict[str, str]:
    """Path → blob of everything that the last commit has, as git itself lists it."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "HEAD"], cwd=tree, capture_output=True, check=True
    ).stdout
    found = {}
    for line in listed.decode("utf-8", "replace").split("\0"):
        head, _, path = line.partition("\t")
        if path and "�" not in path and path.isprintable():
            found[path] = head.split(" ")[2]
    return found


@pytest.mark.contract("E6")
async def test_what_was_staged_is_indexed_and_the_work_tree_is_found(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", SHOP)
    prepare_folder(tree)
    await git_hook.install(tree, program="/nonexistent")
    async with opened(tree) as index:
        await index.update()
        write(tree, {"a.py": STAGED})
        git(tree, "add", "a.py")
        write(tree, {"a.py": LATER})
        git(tree, "commit", "-qm", "only what was staged")
        await drain(index, tree / FOLDER)
        row = (await committed(index.table.store))["a.py"]
        assert row.content == index.indexer.reader.source("a.py", STAGED.encode()).content
        assert (await index.search("what_came_later")).hits[0].symbol == "what_came_later"
        assert not any(
            hit.path == "a.py" and "staged" in hit.text
            for hit in (await index.search("what_was_staged")).hits
        )
        (hit, *_) = (await index.search_commit("what_was_staged")).hits
        assert (hit.path, hit.symbol, hit.text) == ("a.py", "what_was_staged", STAGED.rstrip())
        assert "later" not in str((await index.search_commit("what_came_later")).hits)
        git(tree, "checkout", "--", "a.py")
        known = await index.table.known_contents([row.content])
        assert known == {row.content}, "what was committed costs no second analysis"
        await index.update()
        assert (await index.search("what_was_staged")).hits[0].path == "a.py"


@pytest.mark.contract("E6", "E46")
async def test_all_changes_of_one_commit_become_visible_together(tmp_path: Path) -> None:
    files = {f"old/m{i}.py": f"def work_{i}():\n    return {i}\n" for i in range(300)}
    tree = tiny_repository(tmp_path / "tree", files)
    async with opened(tree) as index, opened(tree) as reader:
        await index.update()
        await CommitIndexer(index.indexer).run()
        before = await reader.table.generation()
        git(tree, "mv", "old", "new")
        (tree / "new/m7.py").unlink()
        write(tree, {"new/m8.py": "def changed_8(): pass\n", "added.py": "def added(): pass\n"})
        git(tree, "add", "--all")
        git(tree, "commit", "-qm", "everything at once")
        report = await CommitIndexer(index.indexer).run()
        assert await reader.table.generation() == before + 1
        assert (report.added, report.deleted, report.committed) == (300, 300, 600)
        changed = {path for path, _ in await reader.table.changes_since(before)}
        assert len(changed) == 600
        assert (await reader.search("changed_8", fresh=False)).hits[0].path == "new/m8.py"
        assert await _blobs(index) == _in_head(tree)
        fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tmp_path / "again")


@pytest.mark.contract("E6")
async def test_an_aborted_commit_leaves_no_trace(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", SHOP)
    prepare_folder(tree)
    await git_hook.install(tree, program="/nonexistent")
    refuse = tree / ".git/hooks/pre-commit"
    refuse.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    refuse.chmod(0o755)
    async with opened(tree) as index:
        await drain(index, tree / FOLDER, commits=True)
        before, name = await _blobs(index), await name_of_commit(index.table.store)
        write(tree, {"secret_plan.py": STAGED})
        git(tree, "add", "--all")
        done = subprocess.run(["git", "commit", "-qm", "x"], cwd=tree, capture_output=True)
        assert done.returncode != 0
        assert not (tree / FOLDER / git_hook.SPOOL).exists()
        git(tree, "rm", "-q", "--cached", "secret_plan.py")
        (tree / "secret_plan.py").unlink()
        await drain(index, tree / FOLDER, commits=True)
        assert (await _blobs(index), await name_of_commit(index.table.store)) == (before, name)
        assert "secret_plan.py" not in await index.table.rows()


def _act(tree: Path, dice: random.Random) -> None:
    """One thing that a person does to a repository."""
    files = sorted(p for p in tree.rglob("*.py"))
    target = tree / f"d{dice.randrange(3)}" / f"f{dice.randrange(12)}.py"
    target.parent.mkdir(exist_ok=True)
    text = f"def w{dice.randrange(40)}():\n    return {dice.randrange(9)}\n"
    act = dice.choice(["write", "write", "delete", "move", "add", "commit", "stash", "back", "am"])
    if act == "write" or not files:
        target.write_text(text, "utf-8")
    elif act == "delete":
        dice.choice(files).unlink()
    elif act == "move":
        dice.choice(files).rename(target)
    elif act == "add":
        git(tree, "add", "--all")
    elif act == "commit":
        git(tree, "commit", "-qm", "x", "--allow-empty")
    elif act == "am":
        git(tree, "commit", "-qm", "again", "--amend", "--allow-empty", "-a")
    elif act == "stash":
        git(tree, "stash", "-q")
    else:
        git(tree, "reset", "-q", "--hard", dice.choice(["HEAD", "first", "HEAD"]))


@pytest.mark.contract("E6", "E46")
@pytest.mark.parametrize("seed", range(8))
async def test_any_history_of_commits_gives_the_index_of_a_rebuild(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    tree = tiny_repository(tmp_path / "tree", {"a.py": "def first(): pass\n"})
    git(tree, "tag", "first")
    async with opened(tree) as index:
        for _ in range(4):
            for _ in range(dice.randint(2, 6)):
                _act(tree, dice)
            await drain(index, tree / FOLDER, commits=True)
            if dice.random() < 0.5:
                await index.update()
        assert await _blobs(index) == _in_head(tree)
        git(tree, "stash", "-q", "--include-untracked")
        await index.update()
        fingerprint = await index.table.fingerprint()
    assert fingerprint == await fingerprint_of_rebuild(tree, tmp_path / "again")


_KILLED = """
import asyncio, sys
from pathlib import Path
from evercontext.index import commit_index
from evercontext.index.code_search import CodeIndex
commit_index.BATCH = 4
async def main():
    index = await CodeIndex.open(Path(sys.argv[1]), use_vectors=False)
    kept, count = index.table.prepare, 0
    async def prepare(contents):
        nonlocal count
        await kept(contents)
        count += 1
        print(count, flush=True)
        if count == 3:
            await asyncio.sleep(60)
    index.table.prepare = prepare
    await commit_index.CommitIndexer(index.indexer).run()
asyncio.run(main())
"""


@pytest.mark.case(128)
@pytest.mark.contract("E46")
async def test_a_commit_is_taken_in_whole_or_not_at_all(tmp_path: Path) -> None:
    files = {f"m{i}.py": f"def work_{i}(): return {i}\n" for i in range(30)}
    tree = tiny_repository(tmp_path / "tree", files)
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tree)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == "3":
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    async with opened(tree) as index:
        assert await index.table.rows() == {}
        assert await name_of_commit(index.table.store) is None
        await index.update()
        middle = await index.table.fingerprint()
        await CommitIndexer(index.indexer).run()
        assert await _blobs(index) == _in_head(tree)
        assert await index.table.fingerprint() == middle
    assert middle == await fingerprint_of_rebuild(tree, tmp_path / "again")


@pytest.mark.case(127)
async def test_odd_names_and_kinds_are_parsed_as_git_means_them(tmp_path: Path) -> None:
    names = [
        "-x.py",
        'quo"te.py',
        "it's.py",
        "日本語/認証.py",
        "a b.py",
        "tab\tname.py",
        "new\nline.py",
    ]
    tree = tiny_repository(tmp_path / "tree", {name: f"x = {i}\n" for i, name in enumerate(names)})
    (tree / os.fsdecode(b"bad\xff.py")).write_text("x = 1\n", "utf-8")
    (tree / "link.py").symlink_to("a b.py")
    (tree / "big.py").write_text("# x\n" * 200_000, "utf-8")
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "odd")
    async with opened(tree) as index:
        await drain(index, tree / FOLDER, commits=True)
        rows = await committed(index.table.store)
        printable = {name for name in names if name.isprintable()}
        assert {p for p, row in rows.items() if row.content} == printable
        assert rows["big.py"].content is None
        assert set(await index.table.rows()) == {*printable, "big.py"}


@pytest.mark.case(127)
@pytest.mark.parametrize("kind", ["below", "detached", "sha256", "none", "bare", "crlf"])
async def test_every_kind_of_repository(tmp_path: Path, kind: str) -> None:
    tree = tmp_path / "tree"
    if kind == "sha256":
        tree.mkdir()
        git(tree, "init", "-q", "--object-format=sha256")
    if kind == "none":
        tree.mkdir()
        git(tree, "init", "-q")
        write(tree, {"app/a.py": STAGED})
    elif kind == "bare":
        tree.mkdir()
        git(tree, "init", "-q", "--bare")
    else:
        tiny_repository(tree, {"app/a.py": STAGED, "other/b.py": "x = 1\n"})
    if kind == "detached":
        git(tree, "checkout", "-q", "--detach")
    if kind == "crlf":
        git(tree, "config", "core.autocrlf", "true")
        (tree / "app/a.py").unlink()
        git(tree, "checkout", "--", "app/a.py")
        assert b"\r\n" in (tree / "app/a.py").read_bytes()
    root = tree / "app" if kind == "below" else tree
    async with opened(root, tmp_path / "index") as index:
        await drain(index, tmp_path / "index", commits=True)
        blobs = await _blobs(index)
        found = await index.search("what_was_staged")
    if kind in ("none", "bare"):
        assert blobs == {}
    else:
        assert blobs == _in_head(root)
    assert bool(found.hits) == (kind != "bare")


async def test_a_repository_without_commits_says_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, SHOP)
    async with opened(tmp_path) as index:
        answer = await index.search_commit("cart")
        assert (answer.hits, answer.note) == ((), "there is no commit with code here")


async def test_a_secret_in_a_commit_stays_out_of_the_index(tmp_path: Path) -> None:
    canary = "sk-" + "c4n4ry" * 6
    tree = tiny_repository(tmp_path / "tree", {"a.py": f"key = '{canary}'\n", ".env": canary})
    write(tree, {"a.py": "key = None\n"})
    async with opened(tree) as index:
        await drain(index, tree / FOLDER, commits=True)
        assert ".env" not in await committed(index.table.store)
        (hit,) = (await index.search_commit("key")).hits
        assert hit.text == "key = '[redacted]'"
    for file in (tree / FOLDER).iterdir():
        assert b"c4n4ry" not in file.read_bytes().lower()
