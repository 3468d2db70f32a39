"""Set up programs of others as MCP clients of ours, and let each of them take one turn.

How to start us over stdio is written by our own ``mcp install``; an address is written as each
program's documentation says.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.cli import mcp_install
from tests.cli.command import EVERCONTEXT, Ended
from tests.real.install import Installed
from tests.real.users import codex_user, environment, gemini_user, write_file
from tests.real.vendor_api import Reply, call

_HANGS = 120
TOKEN_VARIABLE = "ROUTER_TOKEN"
"""Codex reads a token from a variable, not from its file."""


@dataclass(frozen=True, slots=True)
class OurServer:
    """How a client reaches us: a command, or an address with a token."""

    arguments: tuple[str, ...] = ("mcp",)
    url: str = ""
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """What a client sends with each request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, slots=True)
class McpClient:
    """A program that has a model and takes tools from MCP servers."""

    user: Callable[[Installed, str], dict[str, str]]
    """Logs its user in at a scripted API; returns the environment."""
    words: tuple[str, ...]
    """Arguments for one turn without a person; the task comes after them."""
    remote: Callable[[OurServer], dict[str, Any]]
    """How it writes down the address of a server."""
    search: str = ""
    """Its tool by which a model looks up the tools of servers before it may call them."""
    caller: str = ""
    """Its tool by which a model calls a tool that it looked up; empty if by its own name."""

    def script(self, *calls: Reply) -> list[Reply]:
        """Return the replies of a model that calls tools of ours in this program."""
        if not self.search:
            return [{**each, "call": f"*{each['call']}"} for each in calls]
        names = [f"mcp__{mcp_install.NAME}__{each['call']}" for each in calls]
        looked_up = call(self.search, query=f"select:{','.join(dict.fromkeys(names))}")
        if not self.caller:
            named = [{**each, "call": name} for each, name in zip(calls, names, strict=True)]
            return [looked_up, *named]
        pairs = zip(names, (each["arguments"] for each in calls), strict=True)
        return [looked_up, *(call(self.caller, name=n, arguments=a) for n, a in pairs)]


def take_turn(installed: Installed, api: str, project: Path, server: OurServer) -> Ended:
    """Tell a client about us, and let it do one task in a project without asking anybody."""
    name = installed.program.name
    client = CLIENTS[name]
    env = client.user(installed, api)
    if server.url:
        _write_address(name, client.remote(server))
    else:
        _install(name, server.arguments, project)
    command = [installed.command, *client.words, "Do as you were told."]
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **env, TOKEN_VARIABLE: server.token, "PWD": str(project)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_HANGS,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def _install(name: str, arguments: tuple[str, ...], project: Path) -> None:
    client = mcp_install.CLIENTS[name]
    start = mcp_install.Start(EVERCONTEXT, arguments)
    edit = mcp_install.plan(client, "user", project, Path.home(), start)
    assert edit
    mcp_install.apply(edit)


def _write_address(name: str, entry: dict[str, Any]) -> None:
    about = mcp_install.CLIENTS[name]
    path = Path.home() / about.user_file
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if path.suffix == ".toml":
        lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        table = "\n".join([f"[{about.key}.{mcp_install.NAME}]", *lines])
        write_file(about.user_file, f"{before}\n{table}\n")
        return
    settings = json.loads(before or "{}")
    settings.setdefault(about.key, {})[mcp_install.NAME] = entry
    write_file(about.user_file, json.dumps(settings))


def _codex_user(installed: Installed, api: str) -> dict[str, str]:
    env = codex_user(installed, api)
    # 0.50 speaks HTTP only if it is told to. Newer ones begin without a server that is not there
    # within a second, which depends on what else this machine does.
    more = ("experimental_use_rmcp_client = true", "mcp_optional_startup_grace_ms = 60000")
    path = Path.home() / ".codex" / "config.toml"
    path.write_text("\n".join([*more, path.read_text()]))
    return env


def _gemini_user(installed: Installed, api: str) -> dict[str, str]:
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {**gemini_user(installed, api), **trusted}


def _claude_user(installed: Installed, api: str) -> dict[str, str]:
    write_file(".claude.json", json.dumps({"hasCompletedOnboarding": True}))
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {
        **environment(installed),
        **quiet,
        "ANTHROPIC_BASE_URL": api,
        "ANTHROPIC_API_KEY": "sk-ant-loopback",
    }


def _opencode_user(installed: Installed, api: str) -> dict[str, str]:
    limits = {"context": 200_000, "output": 8_000}
    seeing = {"input": ["text", "image"], "output": ["text"]}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "loopback",
        "options": {"baseURL": f"{api}/v1", "apiKey": "k"},
        "models": {"x": {"name": "x", "limit": limits, "attachment": True, "modalities": seeing}},
    }
    settings = {
        "provider": {"loopback": provider},
        "model": "loopback/x",
        "small_model": "loopback/x",
        "autoupdate": False,
        "share": "disabled",
    }
    write_file(".config/opencode/opencode.json", json.dumps(settings))
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return {**environment(installed), **quiet}


def _qwen_user(installed: Installed, api: str) -> dict[str, str]:
    settings = {"security": {"auth": {"selectedType": "openai"}}}
    write_file(".qwen/settings.json", json.dumps(settings))
    model = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{api}/v1", "OPENAI_MODEL": "qwen3-vl-plus"}
    return {**environment(installed), **model}


def _codex_address(server: OurServer) -> dict[str, Any]:
    token = {"bearer_token_env_var": TOKEN_VARIABLE} if server.token else {}
    return {"url": server.url, **token}


def _typed_address(server: OurServer) -> dict[str, Any]:
    return {"type": "http", "url": server.url, "headers": server.headers}


def _gemini_address(server: OurServer) -> dict[str, Any]:
    return {"httpUrl": server.url, "headers": server.headers}


def _opencode_address(server: OurServer) -> dict[str, Any]:
    return {"type": "remote", "url": server.url, "headers": server.headers, "enabled": True}


CLIENTS = {
    "codex": McpClient(
        _codex_user,
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        _codex_address,
    ),
    "gemini": McpClient(
        _gemini_user, ("--yolo", "-m", "gemini-2.5-pro", "--prompt"), _gemini_address
    ),
    "claude": McpClient(
        _claude_user,
        ("--allowedTools", "mcp__evercontext", "--print"),
        _typed_address,
        "ToolSearch",
    ),
    "opencode": McpClient(_opencode_user, ("run",), _opencode_address),
    "qwen": McpClient(
        _qwen_user, ("--yolo", "--prompt"), _gemini_address, "tool_search", "tool_call"
    ),
}
