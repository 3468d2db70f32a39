from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.index.commits import Commits, Staged, blob_name
from evercontext.testing import git, tiny_repository


@pytest.mark.contract("E39")
async def test_differences_between_commits_are_paths_and_blobs(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path, {"a.py": "x = 1\n", "b.py": "x = 2\n", "c.py": "x = 3\n"})
    commits = Commits(tree)
    first = await commits.head()
    assert first is not None
    git(tree, "mv", "a.py", "moved.py")
    (tree / "b.py").unlink()
    (tree / "link.py").symlink_to("c.py")
    git(tree, "add", "--all")
    git(tree, "commit", "-qm", "second")
    second = await commits.head()
    assert second is not None
    moved = blob_name(b"x = 1\n", first)
    assert await commits.changes(first, second) == [
        Staged("a.py", None),
        Staged("b.py", None),
        Staged("link.py", None),
        Staged("moved.py", moved),
    ]
    assert await commits.tree(second) == [
        Staged("c.py", blob_name(b"x = 3\n", first)),
        Staged("moved.py", moved),
    ]


async def test_a_commit_that_is_gone_is_said_so(tmp_path: Path) -> None:
    commits = Commits(tiny_repository(tmp_path, {"a.py": "x = 1\n"}))
    head = await commits.head()
    assert head is not None
    assert await commits.changes("0" * 39 + "1", head) is None
    assert await commits.changes("--output=evil", head) is None
    assert not (tmp_path / "evil").exists()


async def test_blobs_come_whole_and_within_bounds(tmp_path: Path) -> None:
    texts = {"a.py": "x = 1\n\n", "large.py": "#" * 5_000, "日本.py": "認証 = 'はい'\n", "e.py": ""}
    commits = Commits(tiny_repository(tmp_path, texts))
    staged = {s.path: s.blob or "" for s in await commits.tree("HEAD") or []}
    missing = "0" * 39 + "1"
    found = await commits.read([*staged.values(), missing, staged["a.py"]], largest=4_000)
    kept = {path: text.encode() for path, text in texts.items() if path != "large.py"}
    assert found == {staged[path]: data for path, data in kept.items()}
