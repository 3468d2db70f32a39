"""X2: what is written through a server or by the agent cannot make the user's next git command run
code: with the real git, in every shape that git resolves."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evercontext.testing import git, tiny_repository
from tests.cli.command import evercontext
from tests.journeys.story import script, write
from tests.server.running import Gateway, running
from tests.tiers import slow

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

Shape = Callable[[Path], None]


def plain(root: Path) -> None:
    tiny_repository(root, {"README.md": "x\n"})


def separate(root: Path) -> None:
    git(root.parent, "init", "--quiet", f"--separate-git-dir={root / 'storage'}", str(root))


def worktree_of_a_bare_repository(root: Path) -> None:
    source = tiny_repository(root.parent / f"{root.name} source", {"README.md": "x\n"})
    git(root.parent, "clone", "--quiet", "--bare", str(source), str(root / ".bare"))
    (root / ".git").write_text("gitdir: ./.bare\n")
    git(root, "worktree", "add", "--quiet", "feature", "-b", "feature")


def hooks_path(root: Path) -> None:
    plain(root)
    git(root, "config", "core.hooksPath", "tools/hooks")


def included(root: Path) -> None:
    plain(root)
    git(root, "config", "include.path", "../settings.txt")


def monitored(root: Path) -> None:
    plain(root)
    git(root, "config", "core.fsmonitor", "./tools/monitor.txt")


def nested_hooks_path(root: Path) -> None:
    tiny_repository(root / "parts" / "one", {"README.md": "x\n"})
    git(root / "parts" / "one", "config", "core.hooksPath", "../../shared")


EXECUTES = (
    '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {canary}; false"\n\tbare = false\n'
)
"""Without the version, git takes no work tree from such a folder, and runs nothing there."""
CASES: dict[str, tuple[Shape, str]] = {
    "separate": (separate, "storage/notes.md"),
    "bare": (worktree_of_a_bare_repository, ".bare/notes.md"),
    "worktree": (worktree_of_a_bare_repository, ".bare/worktrees/feature/notes.md"),
    "hooks path": (hooks_path, "tools/hooks/notes.md"),
    "included": (included, "settings.txt"),
    "monitor": (monitored, "tools/monitor.txt"),
    "nested": (nested_hooks_path, "shared/notes.md"),
    "husky": (plain, ".husky/notes.md"),
    "lefthook": (plain, "lefthook.yml"),
    "pre-commit": (plain, ".pre-commit-config.yaml"),
    "capitals": (plain, "LEFTHOOK.YML"),
    "wide letters": (plain, ".ＧＩＴ/notes.md"),
    "environment": (plain, "node_modules/pkg/index.json"),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One server over a folder of repositories, one of each shape."""
    place = tmp_path_factory.mktemp("gateway")
    for name, (shape, _) in CASES.items():
        (place / "root" / name).mkdir(parents=True)
        shape(place / "root" / name)
    with running(place / "root", place / "home") as gateway:
        yield gateway


@pytest.mark.contract("E22")
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_server_writes_nothing_that_git_obeys(gateway: Gateway, name: str) -> None:
    root, path = gateway.root / name, f"{name}/{CASES[name][1]}"
    before = sorted(root.rglob("*"))
    answer = gateway.post("write_file", {"path": path, "content": "x\n", "mode": "overwrite"})
    assert answer.status_code == 403, answer.text
    assert sorted(root.rglob("*")) == before
    body = {"path": f"{name}/src/plain.md", "content": "x\n", "mode": "create"}
    assert gateway.post("write_file", body).status_code == 200


def run_model(tmp_path: Path, *paths_and_contents: tuple[str, str]) -> list[str]:
    """Let an unattended run write these files; return what each call was answered with."""
    turns = [write(path, content) for path, content in paths_and_contents]
    model = script(tmp_path / "model", *turns, {"text": "done"})
    arguments = ("run", "--task", "x", "-m", model, "--output-format", "stream-json")
    done = evercontext(*arguments, cwd=tmp_path / "root")
    events = [json.loads(line) for line in done.out.splitlines()]
    return [str(event) for event in events]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 2, 3, 0)])
def test_no_folder_becomes_a_repository_by_writing(tmp_path: Path, order: tuple[int, ...]) -> None:
    canary = tmp_path / "canary"
    files = [
        ("docs/HEAD", "ref: refs/heads/main\n"),
        ("docs/config", EXECUTES.format(canary=canary) + "\tworktree = ..\n"),
        ("docs/objects/a.txt", "x\n"),
        ("docs/refs/a.txt", "x\n"),
    ]
    (tmp_path / "root" / "docs").mkdir(parents=True)
    told = run_model(tmp_path, *(files[number] for number in order))
    subprocess.run(["git", "status"], cwd=tmp_path / "root/docs", capture_output=True, check=False)
    assert not canary.exists()
    assert any("would make this folder a git directory" in event for event in told)


@pytest.mark.parametrize("shape", ["hooks path", slow("separate"), slow("bare")])
@pytest.mark.slow
def test_the_next_git_command_runs_nothing_that_the_agent_wrote(tmp_path: Path, shape: str) -> None:
    make, path = CASES[shape]
    root, canary = tmp_path / "root", tmp_path / "canary"
    root.mkdir()
    make(root)
    folder = path.rpartition("/")[0]
    hook = f"#!/bin/sh\ntouch {canary}\n"
    planted = [(f"{folder}/config", EXECUTES.format(canary=canary))]
    planted += [(f"{folder}/{place}pre-commit", hook) for place in ("", "hooks/")]
    for one in planted:
        run_model(tmp_path, one)
    for hook_file in root.rglob("pre-commit"):
        hook_file.chmod(0o755)
    top = root / "feature" if (root / "feature").exists() else root
    names = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["status"], ["commit", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *names, *arguments], cwd=top, capture_output=True, check=False)
    assert not canary.exists()


@pytest.mark.slow
def test_an_unattended_run_says_who_may_change_a_hook(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    told = run_model(tmp_path, (".husky/pre-commit", "echo hi\n"))
    assert not (tmp_path / "root/.husky").exists()
    assert any("approval" in event for event in told)
