"""Files of a project that we obey, as somebody hostile makes them: nothing waits for them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import evercontext
from tests.journeys.story import script, write
from tests.tiers import slow

NAMES = """
    package.json pyproject.toml setup.cfg go.mod Cargo.toml Makefile AGENTS.md CLAUDE.md .mcp.json
    .gitignore .evercontextignore .agents/skills/a/SKILL.md .git/hooks/post-commit
    .venv/pyvenv.cfg evercontext.toml
"""


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def make_closed(path: Path) -> None:
    path.write_text("[")
    path.chmod(0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for name in NAMES.split():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    return root


@pytest.mark.parametrize(
    "make", [make_pipe, make_endless, *map(slow, (make_huge, make_closed, Path.mkdir))]
)
@pytest.mark.slow
def test_a_task_ends_whatever_the_projects_files_are(
    project: Path, tmp_path: Path, make: object
) -> None:
    """S6, X9: no file that a project brings keeps a run waiting or fills the memory."""
    # One that cannot be read, or is too large, stops everything with its name, as a broken one.
    told = make in (make_huge, make_closed)
    for name in NAMES.split()[: -1 if told else None]:
        make(project / name)  # type: ignore[operator]
    model = script(tmp_path / "script.jsonl", write("a.txt", "x\n"), {"text": "done"})
    ended = evercontext("run", "--task", "write", "--model", model, cwd=project)
    assert (project / "a.txt").read_text() == "x\n", ended.err
    assert ended.code in (0, 4), ended.err
    ended = evercontext("fix", cwd=project)
    # Nothing to check, or programs that are not here: never green, and it ends.
    assert ended.code == 1, (ended.out, ended.err)
    assert "nothing was checked" in ended.out or "not verified" in ended.out, ended.out
    ended = evercontext("index", cwd=project)
    assert ended.code == 0, ended.err


def test_a_huge_settings_file_is_named(project: Path) -> None:
    make_huge(project / "evercontext.toml")
    ended = evercontext("fix", cwd=project)
    assert ended.code == 1, ended.err
    assert "evercontext.toml is larger than" in ended.err


@pytest.mark.parametrize("content", ["a" + ".a" * 20_000 + " = 1", "a = " + "[" * 20_000])
def test_settings_that_are_slow_to_parse_are_refused_at_once(project: Path, content: str) -> None:
    """40 KB of one dotted key kept every command busy for 40 s."""
    (project / "evercontext.toml").write_text(content)
    ended = evercontext("fix", cwd=project)
    assert ended.code == 1, ended.err
    assert "evercontext.toml is not valid TOML" in ended.err


@pytest.mark.parametrize("make", [make_pipe, make_endless, Path.mkdir])
def test_a_clients_file_that_is_none_is_refused_at_once(project: Path, make: object) -> None:
    make(project / ".mcp.json")  # type: ignore[operator]
    ended = evercontext("mcp", "install", "claude", "--yes", cwd=project)
    assert ended.code != 0
    assert ".mcp.json is not a plain file" in ended.err, ended.err


@pytest.mark.parametrize("name", [".git/HEAD", ".git/index", ".git/config", "src/.gitignore"])
def test_a_pipe_where_git_reads_a_file_is_refused_and_named(project: Path, name: str) -> None:
    """S6, X9: git would wait for it, and we for git."""
    (project / name).unlink(missing_ok=True)
    (project / name).parent.mkdir(exist_ok=True)
    make_pipe(project / name)
    ended = evercontext("tools", "call", "evercontext:git_status", "{}", cwd=project)
    assert (ended.code, ended.err.count("error: ")) == (1, 1)
    assert f"git cannot read {name}: it is a pipe" in ended.err


def test_index_search_and_hook_wait_for_no_pipe_of_git(project: Path) -> None:
    """S6, X9: the tree is indexed without git, and what needs git says why it cannot."""
    (project / "a.py").write_text("def heron():\n    return 1\n")
    (project / ".git/HEAD").unlink()
    make_pipe(project / ".git/HEAD")
    ended = evercontext("index", cwd=project)
    assert (ended.code, "1 file indexed" in ended.out) == (0, True), ended.err
    ended = evercontext("search", "heron", cwd=project)
    assert (ended.code, "a.py" in ended.out) == (0, True), ended.err
    ended = evercontext("hook", "status", cwd=project)
    assert ended.code == 1
    assert "git cannot read .git/HEAD: it is a pipe" in ended.err
