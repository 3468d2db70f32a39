from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from evercontext.domain.tool import Mode
from evercontext.errors import PathEscape, PathRefused, ProcessProblem, ProtectedPath
from evercontext.events.log import EventLog
from evercontext.files.file_tree import Tree
from evercontext.files.policy import agent_policy
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.git_tools import Git, git_tools
from tests.workspace.conftest import CALLER


def shell(place: Path, *argv: str) -> str:
    return subprocess.run(argv, cwd=place, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def git(place: Path, tmp_path: Path) -> Iterator[Git]:
    shell(place, "git", "init", "-q", "-b", "main")
    shell(place, "git", "config", "user.name", "Tester")
    shell(place, "git", "config", "user.email", "t@example.invalid")
    (place / "a.txt").write_text("one\n")
    shell(place, "git", "add", ".")
    shell(place, "git", "commit", "-q", "-m", "first")
    tree = Tree.open(place, agent_policy())
    yield Git(tree, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    tree.close()


def objects(place: Path) -> set[str]:
    return {str(p) for p in (place / ".git/objects").rglob("*") if p.is_file()}


async def test_looking_and_committing(git: Git, place: Path) -> None:
    (place / "a.txt").write_text("two\n")
    (place / "新しい.txt").write_text("x\n")
    assert " M a.txt" in await git.status()
    assert "+two" in await git.diff(["a.txt"])
    assert "-m fix" in await git.commit("-m fix: say two", ["a.txt", "新しい.txt"])
    assert "first" in await git.log()
    assert "one" in await git.show("HEAD~1:a.txt")
    assert await git.diff(revision="HEAD") == ""
    with pytest.raises(ProcessProblem):
        await git.show("nowhere")


@pytest.mark.case(77)
@pytest.mark.parametrize(
    "evil", ["--output=x.txt", "--upload-pack=touch x", "-x", "-", "", "a b", "$(x)", "a\nb"]
)
async def test_a_revision_is_never_an_option(git: Git, place: Path, evil: str) -> None:
    before = sorted(os.listdir(place))
    with pytest.raises(PathRefused):
        await git.show(evil)
    with pytest.raises(PathRefused):
        await git.diff(revision=evil)
    if evil.startswith("-"):
        with pytest.raises(PathRefused):
            await git.diff([evil])
    assert sorted(os.listdir(place)) == before


@pytest.mark.case(78)
async def test_nothing_outside_can_be_committed(git: Git, place: Path, tmp_path: Path) -> None:
    outside = tmp_path / ".ssh"
    outside.mkdir()
    (outside / "config").write_text("SECRET")
    (place / "link").symlink_to(outside)
    before = objects(place)
    for path in ("../.ssh/config", "../../.ssh/config", str(outside / "config"), "~/.ssh/config"):
        with pytest.raises(PathEscape):
            await git.commit("steal", [path])
    with pytest.raises(PathRefused):
        await git.commit("steal", ["link/config"])
    with pytest.raises(ProtectedPath):
        await git.commit("steal", [".env"])
    assert objects(place) == before


@pytest.mark.case(77)
async def test_what_a_repository_configures_does_not_run(git: Git, place: Path) -> None:
    evil = place.parent / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {place.parent}/ran\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager"):
        shell(place, "git", "config", key, str(evil))
    hook = place / ".git/hooks/pre-commit"
    hook.write_text(evil.read_text())
    hook.chmod(0o755)
    (place / "a.txt").write_text("two\n")
    await git.status()
    await git.diff()
    await git.commit("two", ["a.txt"])
    assert not (place.parent / "ran").exists()


async def test_secrets_in_the_history_are_not_shown(git: Git, place: Path) -> None:
    (place / ".env").write_text("KEY=SECRET\n")
    (place / "b.txt").write_text("shown\n")
    shell(place, "git", "add", ".")
    assert "SECRET" not in await git.diff(staged=True)
    shell(place, "git", "commit", "-q", "-m", "oops")
    shown = await git.show("HEAD")
    assert "oops" in shown
    assert "+shown" in shown
    assert "SECRET" not in shown
    with pytest.raises(ProtectedPath):
        await git.show("HEAD:.env")
    (place / ".env").write_text("KEY=SECRET2\n")
    assert await git.diff() == ""


async def test_plan_mode_may_look_and_not_commit(git: Git, tmp_path: Path) -> None:
    events = EventLog(tmp_path / "traces")
    offered = {tool.name for tool in Toolbox(git_tools(git), events).offered(Mode.PLAN)}
    assert offered == {"git_status", "git_diff", "git_log", "git_show"}
    result = await Toolbox(git_tools(git), events).call("git_log", {"count": 1}, CALLER)
    assert "first" in result.text
    events.close()


async def test_only_commits_are_shown(git: Git, place: Path) -> None:
    """X17: the id of a file, four digits of it are enough, shows no secret."""
    (place / ".env").write_text("KEY=canary\n")
    (place / ".ssh").mkdir()
    (place / ".ssh/config").write_text("canary\n")
    shell(place, "git", "add", "-f", ".")
    shell(place, "git", "commit", "-q", "-m", "oops")
    shell(place, "git", "tag", "-a", "v1", "-m", "one")
    blob = shell(place, "git", "rev-parse", "HEAD:.env").strip()
    tree = shell(place, "git", "rev-parse", "HEAD:.ssh").strip()
    for revision in (blob, blob[:7], f"{tree}:config", tree):
        with pytest.raises(ProcessProblem, match="no commit"):
            await git.show(revision)
        with pytest.raises((ProcessProblem, PathRefused)):
            await git.diff(revision=revision)
    assert "oops" in await git.show("v1")
    assert "one" in await git.show("v1:a.txt")
    assert await git.diff(revision="HEAD~1..HEAD") == ""


async def test_no_filter_and_no_submodule_starts_anything(
    git: Git, place: Path, tmp_path: Path
) -> None:
    """X25: a hostile configuration, in the repository and in a submodule's."""
    evil = f"touch {tmp_path / 'ran'}; cat"
    other = tmp_path / "other"
    other.mkdir()
    shell(other, "git", "init", "-q", "-b", "main")
    named = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")
    shell(other, *named, "commit", "-q", "--allow-empty", "-m", "x")
    shell(
        place,
        *named,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(other),
        "sub",
    )
    (place / ".gitattributes").write_text("*.txt filter=evil.One diff=evil\n")
    shell(place, "git", "add", ".")
    shell(place, *named, "commit", "-q", "-m", "second")
    for key in ("clean", "smudge", "process"):
        shell(place, "git", "config", f"filter.evil.One.{key}", evil)
    shell(place, "git", "config", "filter.evil.One.required", "true")
    shell(place, "git", "config", "diff.evil.textconv", evil)
    shell(place, "git", "config", "diff.evil.command", evil)
    shell(place / "sub", "git", "config", "core.fsmonitor", evil)
    (place / "a.txt").write_text("two\n")
    assert "a.txt" in await git.status()
    assert "+two" in await git.diff()
    assert "first" in await git.log()
    await git.show("HEAD")
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "status"], cwd=place, check=False, capture_output=True)
    assert (tmp_path / "ran").exists(), "the configuration would have run something"
