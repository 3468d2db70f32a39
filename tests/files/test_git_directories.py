from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evercontext.errors import ProtectedPath
from evercontext.files.git_directories import GitGuard, parse_config, resolve
from evercontext.testing import git, tiny_repository

NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TRICKY = r"""
# a comment that ends with a backslash \
[core]
	hooksPath = "my \"hooks\"" ; comment
	pager = "less \\ -R" # another
	editor = one \
two
[alias "Sub.Case"] key = value
[include] path = a;b
flag
"""


@NEEDS_GIT
def test_settings_are_read_as_git_reads_them(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(TRICKY)
    listed = subprocess.run(
        ["git", "config", "--file", str(tmp_path / "config"), "--list", "-z"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    expected = [tuple([*line.split("\n", 1), ""][:2]) for line in listed.split("\0") if line]
    assert list(parse_config(TRICKY)) == expected


@NEEDS_GIT
@pytest.mark.parametrize("value", ["hooks", "./a/../b", "~/mine", "/somewhere/else"])
def test_the_hooks_are_where_git_looks_for_them(tmp_path: Path, value: str) -> None:
    top = tiny_repository(tmp_path / "top", {"a.txt": "a"})
    git(top, "config", "core.hooksPath", value)
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        ["git", "rev-parse", "--git-path", "hooks"],
        cwd=top,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    found = resolve(top, environment)
    assert found is not None
    assert Path(os.path.normpath(top / said)) in found.places


def test_a_change_of_the_settings_is_noticed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    config = tmp_path / ".git/config"
    config.write_text("[core]\n\thooksPath = one\n")
    guard = GitGuard(tmp_path, {})
    assert guard.check(("one", "pre-commit"))
    assert guard.check(("second", "pre-commit")) is None
    config.write_text("[core]\n\thooksPath = second\n")
    assert guard.check(("second", "pre-commit"))


def test_settings_that_include_themselves_or_a_pipe_end(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / "pipe")
    text = "[include]\n\tpath = config\n\tpath = ../pipe\n\tpath = ../missing\n"
    (tmp_path / ".git/config").write_text(text)
    guard = GitGuard(tmp_path, {})
    assert guard.check(("missing",))
    assert guard.check(("pipe",))


def test_a_work_tree_inside_a_bare_repository_is_no_git_directory(tmp_path: Path) -> None:
    for name in ("objects", "refs", "main"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "main/.git").write_text("gitdir: ../worktrees/main\n")
    guard = GitGuard(tmp_path, {})
    assert guard.check(("main", "a.py")) is None
    for name in ("config", "hooks"):
        with pytest.raises(ProtectedPath):
            guard.check((name, "pre-commit") if name == "hooks" else (name,))


def test_settings_from_the_environment_count(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    environment = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": "tools",
    }
    assert GitGuard(tmp_path, environment).check(("tools", "pre-push"))
