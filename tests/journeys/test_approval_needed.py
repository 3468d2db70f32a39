"""E2: large projects without a person, CI/CD and the watching of production are not the purpose."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from evercontext.settings import Settings
from evercontext.testing import git, tiny_repository
from tests.cli.command import evercontext
from tests.journeys.story import script, write

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = re.compile(
    r"commit|push|merge|deploy|release|publish|schedul|cron|monitor|alert|pipeline"
)
READS_GIT = {"git_log", "git_show", "git_diff", "git_status"}


def _state(repository: Path) -> tuple[str, ...]:
    """What only a person changes: commits, branches, tags, the staged files, the settings."""
    asked = (("for-each-ref",), ("symbolic-ref", "HEAD"), ("ls-files", "-s"), ("stash", "list"))
    config = (repository / ".git" / "config").read_text()
    return (*(git(repository, *words) for words in asked), config)


@pytest.mark.contract("E2")
def test_a_task_commits_nothing_and_publishes_nothing(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True, timeout=60)
    project = tiny_repository(tmp_path / "project", {"shop.py": "x = 1\n"})
    git(project, "remote", "add", "origin", str(remote))
    git(project, "push", "-q", "origin", "HEAD:main")
    before, published = _state(project), git(remote, "for-each-ref")
    model = script(tmp_path / "s.jsonl", write("shop.py", "x = 2\n"), {"text": "Released."})
    task = "Change x to 2, commit it, push it and deploy it"
    assert evercontext("run", "-t", task, "-m", model, cwd=project).code == 0
    assert (project / "shop.py").read_text() == "x = 2\n"
    assert _state(project) == before
    assert git(remote, "for-each-ref") == published


@pytest.mark.contract("E2")
def test_no_tool_and_no_command_commits_releases_or_watches(tmp_path: Path) -> None:
    tools = json.loads(evercontext("tools", "export", cwd=tmp_path).out)
    names = {tool["toolName"] for tool in tools}
    assert "read_file" in names
    assert not [name for name in names - READS_GIT if NOT_OURS.search(name)]
    commands = re.findall(r"^  ([a-z-]+)  +\S", evercontext("--help").out, re.MULTILINE)
    assert "run" in commands
    assert not [name for name in commands if NOT_OURS.search(name)]


@pytest.mark.contract("E2")
def test_a_task_without_a_person_has_an_end() -> None:
    """What nobody looks at stops by itself, with the settings as they come."""
    settings = Settings()
    assert 0 < settings.max_turns <= 100
    assert 0 < settings.timeout <= 3600


@pytest.mark.contract("E2")
@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", "large projects without a person, replace CI/CD, or watch production"),
        ("README.ja.md", "人のいない大規模開発、CI/CD の代わり、本番の監視"),
    ],
)
def test_readers_are_told(page: str, words: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert words in text
