from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.errors import NotFound, PathEscape, ProtectedPath
from evercontext.files.contained_paths import Root
from evercontext.files.file_tree import Tree
from evercontext.files.policy import agent_policy
from evercontext.files.text_search import search


@pytest.mark.contract("N19")
def test_search(place: Path) -> None:
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/x.py").write_text("needle = 1")
    (place / "a/y.py").write_text("Needle")
    (place / "ナイフ.md").write_text("針 needle")
    (place / "bin.py").write_bytes(b"needle\0")
    (place / ".env").write_text("needle")
    (place / "x.exe").write_text("needle")
    (place / "node_modules").mkdir()
    (place / "node_modules/z.js").write_text("needle")
    (place / "out.py").symlink_to("/etc/passwd")
    tree = Tree.open(place, agent_policy())
    assert tree.search(".", "needle").paths == ("ナイフ.md", "a/b/x.py")
    assert tree.search("a", "needle").paths == ("a/b/x.py",)
    assert tree.search(".", "針").paths == ("ナイフ.md",)
    with pytest.raises(NotFound):
        tree.search("none", "x")
    with pytest.raises(PathEscape):
        tree.search("..", "x")
    with pytest.raises(ProtectedPath):
        tree.search(".git", "x")
    tree.close()


def test_a_search_ends_with_what_it_found_and_says_so(place: Path) -> None:
    """X10: one that takes too long was an error, and what it had found was lost."""
    for name in ("a.py", "b.py"):
        (place / name).write_text("needle")
    with Root.open(place) as root:
        early = search(root, ".", "needle", agent_policy(), seconds=-1)
        assert (early.paths, early.truncated) == ((), True)
        complete = search(root, ".", "needle", agent_policy())
        assert (complete.paths, complete.truncated) == (("a.py", "b.py"), False)
