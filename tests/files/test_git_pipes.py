from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.files.git_pipes import pipe_for_git
from evercontext.testing import tiny_repository

READ_BY_GIT = """
    .git/HEAD .git/packed-refs .git/index .git/config .git/commondir .git/shallow .git/info/exclude
    .git/refs/heads/other .git/objects/info/alternates .gitignore src/.gitignore src/.gitattributes
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "project", {"src/a.py": "x = 1\n"})


@pytest.mark.parametrize("name", READ_BY_GIT.split())
def test_a_pipe_that_git_would_wait_for_is_named(project: Path, name: str) -> None:
    """S6, X9"""
    assert pipe_for_git(project, {}) is None
    (project / name).unlink(missing_ok=True)
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(project / name)
    assert pipe_for_git(project / "src", {}) == name


def test_what_git_does_not_read_is_no_pipe_for_it(project: Path, tmp_path: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "src/.gitignore").symlink_to(project / "pipe")  # git follows no such link
    assert pipe_for_git(project, {}) is None
    (project / ".git/config").unlink()
    (project / ".git/config").symlink_to(project / "pipe")
    assert pipe_for_git(project, {}) == ".git/config"
    assert pipe_for_git(tmp_path, {}) is None, "outside of a repository git reads nothing"


def test_installed_programs_are_not_looked_through(project: Path) -> None:
    """They are most of a tree; a branch may be called like them."""
    (project / "node_modules/a").mkdir(parents=True)
    os.mkfifo(project / "node_modules/a/.gitignore")
    assert pipe_for_git(project, {}) is None
    (project / ".git/refs/heads/venv").mkdir()
    os.mkfifo(project / ".git/refs/heads/venv/new")
    assert pipe_for_git(project, {}) == ".git/refs/heads/venv/new"
