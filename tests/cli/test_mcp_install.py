from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from evercontext.cli import jsonc
from evercontext.cli.mcp_install import CLIENTS, NAME, Scope, Start, apply, plan
from evercontext.errors import Changed, ConfigError

START = Start("/opt/bin/evercontext")


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("project", "home"):
        (tmp_path / name).mkdir()
    return tmp_path / "project", tmp_path / "home"


def parsed(path: Path) -> dict[str, object]:
    text = path.read_text()
    found: dict[str, object] = tomllib.loads(text) if path.suffix == ".toml" else jsonc.parse(text)
    return found


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("name", list(CLIENTS))
def test_fresh_configuration_names_our_command(
    places: tuple[Path, Path], name: str, scope: Scope
) -> None:
    root, home = places
    client = CLIENTS[name]
    edit = plan(client, scope, root, home, START)
    assert edit is not None
    assert not edit.path.exists()
    assert "+++" in edit.diff
    apply(edit)
    entry = parsed(edit.path)[client.key][NAME]  # type: ignore[index]
    command = entry["command"]
    started = command if isinstance(command, list) else [command, *entry["args"]]
    assert started == ["/opt/bin/evercontext", "mcp"]
    assert client.next_step(scope)
    assert edit.path.is_relative_to(root if scope == "project" else home)
    assert plan(client, scope, root, home, START) is None
    assert [path.name for path in edit.path.parent.iterdir()] == [edit.path.name]


def test_comments_and_unknown_keys_of_json_stay(places: tuple[Path, Path]) -> None:
    root, home = places
    path = home / ".config" / "zed" / "settings.json"
    path.parent.mkdir(parents=True)
    text = '// mine\n{\n  "theme": "One", // nice\n  "context_servers": {"other": {"x": 1}},\n}\n'
    path.write_text(text)
    edit = plan(CLIENTS["zed"], "user", root, home, START)
    assert edit is not None
    apply(edit)
    after = path.read_text()
    assert "// mine" in after
    assert "// nice" in after
    assert parsed(path)["theme"] == "One"
    assert parsed(path)["context_servers"].keys() == {"other", NAME}  # type: ignore[attr-defined]


CODEX = """# my settings
model = "gpt-5"  # the good one

[mcp_servers.other]
command = "x"

[mcp_servers.evercontext]
command = "old"
[mcp_servers.evercontext.env]
A = "b"

[profiles.fast]
model = "mini"
"""


def test_own_table_of_toml_is_replaced_and_the_rest_stays(places: tuple[Path, Path]) -> None:
    root, home = places
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(CODEX)
    edit = plan(CLIENTS["codex"], "user", root, home, START)
    assert edit is not None
    apply(edit)
    known = parsed(path)
    assert known["model"] == "gpt-5"
    assert known["profiles"] == {"fast": {"model": "mini"}}
    assert known["mcp_servers"] == {
        "other": {"command": "x"},
        NAME: {"command": "/opt/bin/evercontext", "args": ["mcp"]},
    }
    assert "# my settings" in path.read_text()
    assert "# the good one" in path.read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("codex", 'mcp_servers = {other = {command = "x"}}\n'),
        ("codex", "not toml ["),
        ("claude", "{ not json"),
        ("claude", "[]"),
        ("cursor", '{"mcpServers": []}'),
    ],
)
def test_configuration_we_cannot_extend_is_left_alone(
    places: tuple[Path, Path], name: str, content: str
) -> None:
    root, home = places
    path = CLIENTS[name].path("project", root, home)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    with pytest.raises(ConfigError, match="by hand"):
        plan(CLIENTS[name], "project", root, home, START)
    assert path.read_text() == content


def test_file_changed_after_it_was_shown_is_not_overwritten(places: tuple[Path, Path]) -> None:
    root, home = places
    edit = plan(CLIENTS["claude"], "project", root, home, START)
    assert edit is not None
    edit.path.write_text('{"theirs": 1}')
    with pytest.raises(Changed):
        apply(edit)
    assert edit.path.read_text() == '{"theirs": 1}'


def test_link_and_mode_are_kept(places: tuple[Path, Path]) -> None:
    root, home = places
    real = home / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    (root / ".mcp.json").symlink_to(real)
    edit = plan(CLIENTS["claude"], "project", root, home, START)
    assert edit is not None
    apply(edit)
    assert (root / ".mcp.json").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert NAME in real.read_text()
