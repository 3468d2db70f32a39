from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.cli.clients import CLIENTS
from tests.cli.command import EVERCONTEXT, evercontext


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "プロジェクト"
    project.mkdir()
    return project


@pytest.mark.parametrize("client", CLIENTS)
def test_our_entry_joins_what_is_there(client: str, project: Path) -> None:
    kind = CLIENTS[client]
    path = kind.path(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    others = {"theme": "暗い", kind.key: {"other": {"command": "x"}}}
    path.write_text(json.dumps(others))
    path.chmod(0o640)
    assert evercontext("mcp", "install", client, cwd=project).code == 0
    written = json.loads(path.read_text())
    assert written["theme"] == "暗い"
    assert written[kind.key]["other"] == {"command": "x"}
    ours = written[kind.key]["evercontext"]
    assert ours == {"command": EVERCONTEXT, "args": ["mcp", "--root", str(project)]}
    assert path.stat().st_mode & 0o777 == 0o640
    assert "already in" in evercontext("mcp", "install", client, cwd=project).out


def test_printing_changes_nothing(project: Path) -> None:
    shown = json.loads(evercontext("mcp", "install", "project", "--print", cwd=project).out)
    assert shown["mcpServers"]["evercontext"]["args"][0] == "mcp"
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": []}'])
def test_a_broken_file_is_named_and_kept(content: str, project: Path) -> None:
    (project / ".mcp.json").write_text(content)
    ended = evercontext("mcp", "install", "project", cwd=project)
    assert ended.code == 1
    assert ".mcp.json" in ended.err
    assert (project / ".mcp.json").read_text() == content
    assert [path.name for path in project.iterdir()] == [".mcp.json"]


def test_a_link_stays_a_link(project: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    (project / ".mcp.json").symlink_to(real)
    assert evercontext("mcp", "install", "project", cwd=project).code == 0
    assert (project / ".mcp.json").is_symlink()
    assert "evercontext" in json.loads(real.read_text())["mcpServers"]
