"""V15: whether a file may be opened is decided alike by the command, the tool and the git hook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.testing import git, tiny_repository
from tests.cli.command import evercontext
from tests.journeys.story import call, script

LINKED = "def tariff(weight):\n    return weight * 2\n"
ALLOWED = {"EC_ALLOW_HARD_LINKS": "1"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tiny_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    (tmp_path / "elsewhere.py").write_text(LINKED)
    (project / "linked.py").hardlink_to(tmp_path / "elsewhere.py")
    git(project, "add", "--all")
    git(project, "commit", "-q", "-m", "linked")
    return project


def _by_command(project: Path, env: dict[str, str]) -> list[str]:
    ended = evercontext("search", "tariff by weight", "--json", cwd=project, env=env)
    return [chunk["path"] for chunk in json.loads(ended.out)["chunks"]]


def _by_tool(project: Path, env: dict[str, str]) -> list[str]:
    asked = {"query": "tariff by weight"}
    model = script(
        project.parent / "s.jsonl",
        {"tool_calls": [call("search_code", **asked)]},
        {"when": r"def tariff", "text": "linked.py"},
        {"text": "none"},
    )
    ended = evercontext("run", "-t", "look", "-m", model, "--dry-run", cwd=project, env=env)
    return [ended.out.strip()] if "none" not in ended.out else []


def _by_hook(project: Path, env: dict[str, str]) -> list[str]:
    assert evercontext("hook", "drain", cwd=project, env=env).code == 0
    return _by_command(project, env)


WAYS = {"command": _by_command, "tool": _by_tool, "hook": _by_hook}


# Each of them starts five processes: one way to begin is enough for the quick tests.
_SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("first", ["hook", "command", "tool"])
def test_whoever_indexes_first_every_part_agrees(project: Path, first: str) -> None:
    for way in (first, *WAYS):
        assert WAYS[way](project, ALLOWED) == ["linked.py"], way


@pytest.mark.parametrize("first", ["command", pytest.param("hook", marks=_SLOW)])
@pytest.mark.slow
def test_the_setting_of_today_counts_and_not_that_of_the_day_it_was_indexed(
    project: Path, first: str
) -> None:
    assert WAYS[first](project, {}) == []
    assert _by_command(project, ALLOWED) == ["linked.py"]
    assert _by_tool(project, ALLOWED) == ["linked.py"]
    assert _by_command(project, {}) == []
    assert _by_tool(project, {}) == []


def test_so_do_size_and_kind(project: Path) -> None:
    """Siblings: what was left out as too large, or of another kind, comes in when it may."""
    small = {**ALLOWED, "EC_MAX_BYTES": "10"}
    assert _by_command(project, small) == []
    assert _by_command(project, ALLOWED) == ["linked.py"]
    assert _by_command(project, {**ALLOWED, "EC_ALLOW_EXT": ".md"}) == []
    assert _by_command(project, ALLOWED) == ["linked.py"]
