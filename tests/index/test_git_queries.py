from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.index.git_queries import ask_git, in_git
from evercontext.testing import git, tiny_repository


@pytest.mark.case(127)
async def test_variables_of_a_hook_around_us_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tiny_repository(tmp_path / "mine", {"a.py": "x = 1\n"})
    other = tiny_repository(tmp_path / "other", {"b.py": "x = 1\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    listed = await ask_git(mine, "ls-files")
    assert listed is not None
    assert listed.text == "a.py\n"


async def test_what_the_user_ignores_everywhere_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("*.notes.md\n", "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    tree = tiny_repository(tmp_path / "tree", {"a.py": "x = 1\n"})
    (tree / "my.notes.md").write_text("private\n", "utf-8")
    listed = await ask_git(tree, "ls-files", "--others", "--exclude-standard")
    assert listed is not None
    assert listed.text == ""


async def test_a_clone_without_its_blobs_fetches_none(tmp_path: Path) -> None:
    far = tiny_repository(tmp_path / "far", {"a.py": "x = 1\n"})
    git(far, "config", "uploadpack.allowFilter", "true")
    near = tmp_path / "near"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", far.as_uri(), str(near))
    blob = git(far, "rev-parse", "HEAD:a.py").strip()
    told = await ask_git(near, "cat-file", "-p", blob)
    assert told is not None
    assert told.exit_code != 0


async def test_no_program_of_the_repository_runs(tmp_path: Path) -> None:
    tree = tiny_repository(tmp_path / "tree", {"a.py": "x = 1\n"})
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n", "utf-8")
    trap.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(trap))
    assert await ask_git(tree, "ls-files", "--others") is not None
    assert not (tmp_path / "sprung").exists()


async def test_what_cannot_be_asked_is_none(tmp_path: Path) -> None:
    assert await ask_git(tmp_path / "nowhere", "status") is None
    assert not in_git(tmp_path)
