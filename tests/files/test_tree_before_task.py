from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext import testing
from evercontext.domain.tool import Caller, Door
from evercontext.errors import TooLarge
from evercontext.files import tree_before_task
from evercontext.files.tree_before_task import lay_out_before
from evercontext.workspace.workspace import LocalWorkspace


async def test_a_tree_is_laid_out_as_it_was_before_the_task(tmp_path: Path) -> None:
    """V7: with what the user had not committed, without what the task made."""
    root, target = tmp_path / "project", tmp_path / "before"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("old\n")
    (root / "mine.py").write_text("by hand\n")
    (root / ".env").write_text("SECRET=1\n")
    (root / "node_modules").mkdir()
    os.mkfifo(root / "pipe")
    async with testing.house(tmp_path) as app:
        caller = Caller("t", Door.RUN)
        for path in ("src/a.py", "new/b.py"):
            asked = {"path": path, "content": "changed\n", "mode": "overwrite"}
            assert (await app.toolbox.call("write_file", asked, caller)).ok
        (root / "mine.py").write_text("by hand again\n")
        assert isinstance(app.workspace, LocalWorkspace)
        journal = app.workspace.journal
        names = lay_out_before(root, journal, "t", target, lambda name: name == ".env")
        assert names == ["mine.py", "src/a.py"]
        assert (target / "src/a.py").read_text() == "old\n"
        assert (target / "mine.py").read_text() == "by hand again\n"
        assert (target / "node_modules").is_symlink()
        assert not (target / ".env").exists()
        assert not (target / "new/b.py").exists()
        assert (root / "src/a.py").read_text() == "changed\n"


async def test_a_huge_tree_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for number in range(4):
        (root / f"{number}.txt").write_text("x")
    monkeypatch.setattr(tree_before_task, "MOST_FILES", 3)
    async with testing.house(tmp_path) as app:
        assert isinstance(app.workspace, LocalWorkspace)
        with pytest.raises(TooLarge):
            lay_out_before(root, app.workspace.journal, "t", tmp_path / "b", lambda name: False)
