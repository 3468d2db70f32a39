from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import EVERCONTEXT, Ended, evercontext


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "プロジェクト"
    project.mkdir()
    return project


def install(project: Path, *arguments: str) -> Ended:
    return evercontext("mcp", "install", *arguments, cwd=project)


def test_the_change_is_shown_then_made_once(project: Path) -> None:
    file = project / ".mcp.json"
    file.write_text('{"mcpServers": {"other": {"command": "x"}}}\n')
    ended = install(project, "claude", "--yes")
    assert ended.code == 0, ended.err
    assert "+" in ended.out
    written = json.loads(file.read_text())["mcpServers"]
    assert written["other"] == {"command": "x"}
    assert written["evercontext"]["command"] in ("evercontext", EVERCONTEXT)
    assert written["evercontext"]["args"] == ["mcp"]
    assert "knows already" in install(project, "claude", "--yes").out


def test_nothing_is_written_unasked(project: Path) -> None:
    assert install(project, "cursor", "--dry-run").code == 0
    ended = install(project, "cursor")
    assert ended.code == 5
    assert "--yes" in ended.err
    assert list(project.iterdir()) == []


def test_your_own_file_is_another_scope(project: Path) -> None:
    assert install(project, "codex", "--scope", "user", "--yes").code == 0
    assert "evercontext" in (Path.home() / ".codex/config.toml").read_text()
    assert list(project.iterdir()) == []


def test_an_unknown_client_is_wrong_usage(project: Path) -> None:
    ended = install(project, "emacs")
    assert ended.code == 64
    assert "claude" in ended.err


def test_a_broken_file_is_named_and_kept(project: Path) -> None:
    (project / ".mcp.json").write_text("{")
    ended = install(project, "claude", "--yes")
    assert ended.code == 1
    assert ".mcp.json" in ended.err
    assert (project / ".mcp.json").read_text() == "{"
