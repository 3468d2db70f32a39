"""Telling MCP clients how to start us, in their own configuration files.

Nothing is written before it was shown: ``plan`` returns the edit with its diff, ``apply`` makes it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evercontext.cli import jsonc
from evercontext.errors import Changed, ConfigError
from evercontext.files.atomic_write import replace_file
from evercontext.files.small_files import small_bytes

NAME = "evercontext"
LARGEST = 8 * 1024 * 1024
"""Bytes of a client's file."""
Scope = Literal["project", "user"]


@dataclass(frozen=True, slots=True)
class Start:
    """The command that starts us for a client."""

    program: str
    arguments: tuple[str, ...] = ("mcp",)


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers, and how it writes one down."""

    title: str
    project_file: str
    user_file: str
    key: str
    entry: Callable[[Start, Scope], dict[str, Any]]
    trust: str = ""
    """What a person has yet to do before the client starts a server of a project's file."""
    user_trust: str = ""
    """The same for a server of the user's own file."""

    def path(self, scope: Scope, root: Path, home: Path) -> Path:
        """Return the configuration file."""
        return root / self.project_file if scope == "project" else home / self.user_file

    def next_step(self, scope: Scope) -> str:
        """Say what is left to do once the file is written."""
        step = self.trust if scope == "project" else self.user_trust
        return step or f"start {self.title} again"


@dataclass(frozen=True, slots=True)
class ConfigEdit:
    """A change to one configuration file that nobody made yet."""

    path: Path
    before: str | None
    after: str

    @property
    def diff(self) -> str:
        """What would change, for a person to look at."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            str(self.path) if self.before is not None else "/dev/null",
            str(self.path),
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _plain(start: Start, scope: Scope) -> dict[str, Any]:
    return {"command": start.program, "args": list(start.arguments)}


def _typed(start: Start, scope: Scope) -> dict[str, Any]:
    return {"type": "stdio", **_plain(start, scope)}


def _in_workspace(start: Start, scope: Scope) -> dict[str, Any]:
    # These clients start servers somewhere else, and fill in this name.
    return {**_typed(start, scope), "env": {"EC_APP_ROOT": "${workspaceFolder}"}}


def _zed(start: Start, scope: Scope) -> dict[str, Any]:
    return {"source": "custom", **_plain(start, scope), "env": {}}


def _opencode(start: Start, scope: Scope) -> dict[str, Any]:
    return {"type": "local", "command": [start.program, *start.arguments], "enabled": True}


_CODE_USER = (
    "Library/Application Support/Code/User/mcp.json"
    if sys.platform == "darwin"
    else ".config/Code/User/mcp.json"
)

CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        "Claude Code",
        ".mcp.json",
        ".claude.json",
        "mcpServers",
        _typed,
        trust="run `claude` here and allow the server when it asks",
    ),
    "codex": Client(
        "Codex",
        ".codex/config.toml",
        ".codex/config.toml",
        "mcp_servers",
        _plain,
        trust="run `codex` here and trust the directory when it asks; until then it reads no"
        " settings of the project",
    ),
    "gemini": Client(
        "Gemini CLI",
        ".gemini/settings.json",
        ".gemini/settings.json",
        "mcpServers",
        _plain,
        trust="run `gemini` here and trust the folder when it asks; until then it starts no server",
        user_trust="run `gemini` and trust the folder when it asks; until then it starts no server",
    ),
    "qwen": Client(
        "Qwen Code",
        ".qwen/settings.json",
        ".qwen/settings.json",
        "mcpServers",
        _plain,
        trust="run `qwen` here, and trust the folder if it asks",
    ),
    "cursor": Client(
        "Cursor",
        ".cursor/mcp.json",
        ".cursor/mcp.json",
        "mcpServers",
        _in_workspace,
        trust="switch the server on in Cursor's settings, under MCP",
        user_trust="switch the server on in Cursor's settings, under MCP",
    ),
    "vscode": Client(
        "VS Code",
        ".vscode/mcp.json",
        _CODE_USER,
        "servers",
        _in_workspace,
        trust="run `MCP: List Servers` in VS Code, start it and trust it when asked",
        user_trust="run `MCP: List Servers` in VS Code, start it and trust it when asked",
    ),
    "zed": Client(
        "Zed",
        ".zed/settings.json",
        ".config/zed/settings.json",
        "context_servers",
        _zed,
        trust="open the project in Zed and trust it when asked",
    ),
    "opencode": Client(
        "opencode", "opencode.json", ".config/opencode/opencode.json", "mcp", _opencode
    ),
}


def plan(client: Client, scope: Scope, root: Path, home: Path, start: Start) -> ConfigEdit | None:
    """Return the edit that adds us, or ``None`` if the client already knows."""
    path = client.path(scope, root, home)
    before = _read(path)
    entry = client.entry(start, scope)
    merge, parse = (_toml, tomllib.loads) if path.suffix == ".toml" else (_json, jsonc.parse)
    try:
        known = parse(before or "")
        servers = known.get(client.key, {})
        if servers.get(NAME) == entry:
            return None
        after = merge(before or "", client.key, entry)
        expected = {**known, client.key: {**servers, NAME: entry}}
        if parse(after) != expected:
            raise ValueError("its layout is not one we can extend")
    except (ValueError, AttributeError, TypeError, RecursionError) as problem:
        raise ConfigError(
            f"{path} cannot be extended ({problem})",
            fix=f"Add by hand under {client.key}: {json.dumps({NAME: entry})}",
        ) from None
    return ConfigEdit(path, before, after)


def apply(edit: ConfigEdit) -> None:
    """Make the edit, whole or not at all; refuse if the file is no longer the one shown."""
    if _read(edit.path) != edit.before:
        raise Changed(f"{edit.path} has changed meanwhile", fix="Run the command again")
    # A link into somebody's dotfiles stays one.
    target = edit.path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    try:
        replace_file(target, edit.after.encode(), mode=mode)
    except OSError as problem:
        raise ConfigError(f"cannot write {edit.path} ({problem.strerror})") from problem


def _read(path: Path) -> str | None:
    real = path.resolve()  # a link into somebody's dotfiles
    content = small_bytes(real.parent, real.name, LARGEST)
    if content is None:
        if os.path.lexists(path):
            raise ConfigError(
                f"{path} is not a plain file of at most {LARGEST} bytes that we may read"
            )
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ConfigError(f"cannot read {path} ({problem})", fix="Correct the file") from None


def _json(text: str, key: str, entry: dict[str, Any]) -> str:
    return jsonc.set_member(text, (key, NAME), entry)


def _toml(text: str, key: str, entry: dict[str, Any]) -> str:
    """Replace our own tables at their end; the rest is not even parsed for writing."""
    ours = re.compile(rf'^\s*\[{key}\.(?:{NAME}|"{NAME}")(?:\.[^\]]*)?\]\s*(?:#.*)?$')
    remaining, skipping = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            skipping = ours.match(line.rstrip("\r\n")) is not None
        if not skipping:
            remaining.append(line)
    rest = "".join(remaining).rstrip("\n")
    table = f"[{key}.{NAME}]\n" + "".join(
        f"{k} = {json.dumps(v, ensure_ascii=False)}\n" for k, v in entry.items()
    )
    return f"{rest}\n\n{table}" if rest else table
