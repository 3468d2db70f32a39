"""Configuration files as the real programs write them: what is taken over, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.server_table import ServerConfig
from evercontext.cli.client_files import read_servers
from evercontext.errors import ConfigError, UsageError

CODEX = """
model = "gpt-5"

[mcp_servers.local]
command = "node"
args = ["srv.js", "--x"]
tool_timeout_sec = 7.5
disabled_tools = ["delete"]
env_vars = ["PASSED"]

[mcp_servers.local.env]
A = "b"

[mcp_servers.remote]
url = "https://h.example/mcp"
bearer_token_env_var = "TOKEN"
env_http_headers = { "X-Key" = "KEY" }
http_headers = { "X-Plain" = "1" }

[mcp_servers.off]
command = "x"
enabled = false
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("project", "home"):
        (tmp_path / name).mkdir()
    return (tmp_path / "project").resolve(), (tmp_path / "home").resolve()


def put(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def read(client: str, places: tuple[Path, Path]) -> dict[str, ServerConfig]:
    configs, skipped = read_servers(client, *places)
    assert skipped == []
    return {config.id: config for config in configs}


def test_codex(places: tuple[Path, Path]) -> None:
    """P12, C6: TOML is read, and a credential that is named by its variable stays one."""
    put(places[1] / ".codex/config.toml", CODEX)
    servers = read("codex", places)
    local = servers["local"]
    assert (local.argv, local.call_seconds) == (("node", "srv.js", "--x"), 7.5)
    assert local.env == {"A": "b", "PASSED": "${PASSED}"}
    assert (local.allows("delete"), local.allows("read")) == (False, True)
    remote = servers["remote"]
    assert (remote.url, remote.transport) == ("https://h.example/mcp", "http")
    assert remote.headers == {
        "X-Plain": "1",
        "X-Key": "${KEY}",
        "Authorization": "Bearer ${TOKEN}",
    }
    assert [servers[name].enabled for name in ("local", "remote", "off")] == [True, True, False]


def test_claude_code_in_its_three_scopes(places: tuple[Path, Path]) -> None:
    """P12: the local scope, which is Claude Code's default, is in the user's file."""
    root, home = places
    stdio = {"type": "stdio", "command": "node", "args": ["p.js"], "env": {}}
    local = {"mcpServers": {"local": stdio, "both": {**stdio, "command": "local"}}}
    other = {"mcpServers": {"elsewhere": stdio}}
    user = {"user": stdio, "both": {**stdio, "command": "user"}}
    content = {"mcpServers": user, "projects": {str(root): local, "/elsewhere": other}}
    put(home / ".claude.json", content)
    put(root / ".mcp.json", {"mcpServers": {"project": stdio}})
    servers = read("claude", places)
    assert sorted(servers) == ["both", "local", "project", "user"]
    assert servers["both"].argv[0] == "local"


def test_a_user_without_servers_has_none_and_that_is_no_error(places: tuple[Path, Path]) -> None:
    put(places[1] / ".claude.json", {"numStartups": 3})
    assert read("claude", places) == {}
    with pytest.raises(UsageError, match="Codex has no configuration here"):
        read_servers("codex", *places)
    put(places[0] / "list.json", {"numStartups": 3})
    with pytest.raises(ConfigError, match="has no mcpServers"):
        read_servers(str(places[0] / "list.json"), *places)


def test_gemini_and_qwen(places: tuple[Path, Path]) -> None:
    entries = {
        "web": {"httpUrl": "https://h/mcp", "headers": {"Authorization": "Bearer $TOKEN"}},
        "typed": {"url": "https://h/mcp", "type": "http", "timeout": 5000, "trust": True},
        "old": {"url": "https://h/sse", "type": "sse"},
        "local": {"command": "node", "args": ["s.js"], "cwd": "/x", "excludeTools": ["rm"]},
    }
    for client in ("gemini", "qwen"):
        put(places[0] / f".{client}/settings.json", {"theme": "x", "mcpServers": entries})
        servers = read(client, places)
        assert servers["web"].headers == {"Authorization": "Bearer ${TOKEN}"}
        assert servers["typed"].call_seconds == 5.0
        transports = [servers[name].transport for name in entries]
        assert transports == ["http", "http", "sse", "stdio"]
        assert (servers["local"].cwd, servers["local"].allows("rm")) == ("/x", False)


def test_cursor_and_vs_code(places: tuple[Path, Path]) -> None:
    entry = {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "srv", "${workspaceFolder}/data"],
        "env": {"KEY": "${env:MY_KEY}", "HOME": "${userHome}"},
    }
    put(places[0] / ".cursor/mcp.json", {"mcpServers": {"one": entry}})
    asked = {"type": "http", "url": "https://h/mcp", "headers": {"X": "Bearer ${input:token}"}}
    content = (
        f'{{ "inputs": [], // asked\n "servers": {json.dumps({"one": entry, "two": asked})},}}'
    )
    put(places[0] / ".vscode/mcp.json", content)
    expected = ("npx", "-y", "srv", f"{places[0]}/data")
    assert read("cursor", places)["one"].argv == expected
    [config], [reason] = read_servers("vscode", *places)
    assert (config.argv, config.env["KEY"]) == (expected, "${MY_KEY}")
    assert config.env["HOME"] == str(places[1])
    assert "server two: it needs a value that VS Code asks for" in reason


def test_zed_in_both_its_forms(places: tuple[Path, Path]) -> None:
    servers = {
        "new": {"source": "custom", "command": "npx", "args": ["-y", "s"], "env": {"A": "b"}},
        "old": {"command": {"path": "npx", "args": ["s"], "env": {"A": "b"}}},
        "remote": {"url": "https://h/mcp", "headers": {"X": "y"}},
        "plugin": {"source": "extension", "settings": {}},
    }
    put(places[1] / ".config/zed/settings.json", {"vim_mode": True, "context_servers": servers})
    configs, [reason] = read_servers("zed", *places)
    assert [config.argv for config in configs] == [("npx", "-y", "s"), ("npx", "s"), ()]
    assert configs[1].env == {"A": "b"}
    assert reason == "server plugin: it belongs to an extension of Zed"


def test_opencode(places: tuple[Path, Path]) -> None:
    servers = {
        "local": {"type": "local", "command": ["npx", "-y", "s"], "environment": {"A": "{env:B}"}},
        "remote": {"type": "remote", "url": "https://h/mcp", "enabled": False},
    }
    put(places[0] / "opencode.json", {"$schema": "x", "mcp": servers})
    read_back = read("opencode", places)
    assert read_back["local"].argv == ("npx", "-y", "s")
    assert read_back["local"].env == {"A": "${B}"}
    assert (read_back["remote"].transport, read_back["remote"].enabled) == ("http", False)
