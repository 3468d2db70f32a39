"""Servers that other MCP clients already know, read from their configuration files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evercontext.catalog.server_table import ServerConfig, read_config
from evercontext.cli import jsonc
from evercontext.cli.mcp_install import CLIENTS, LARGEST, NAME
from evercontext.errors import ConfigError, UsageError
from evercontext.files.small_files import small_bytes

_KEYS = ("mcpServers", "mcp_servers", "servers", "context_servers", "mcp")
_ENVIRONMENT = re.compile(r"\$\{env:(\w+)\}|\{env:(\w+)\}|(?<!\S)\$([A-Z_][A-Z0-9_]*)$")
"""A variable as Cursor and VS Code, opencode and Gemini CLI write it; ours is ``${NAME}``."""
_INPUT_PLACEHOLDER = re.compile(r"\$\{input:[^}]*\}")
"""What VS Code asks its user for when the server starts."""


def read_servers(
    source: str, root: Path, home: Path, project: str = ""
) -> tuple[list[ServerConfig], list[str]]:
    """Return what a client (or a file) has, and why the rest was left out."""
    configs: dict[str, ServerConfig] = {}
    skipped: list[str] = []
    for path in _files(source, root, home):
        for name, entry in _entries(path, root).items():
            if name == NAME:
                continue
            try:
                configs[name] = _config(name, entry, root, home, project)
            except ConfigError as problem:
                skipped.append(problem.message)
    return list(configs.values()), skipped


def _files(source: str, root: Path, home: Path) -> list[Path]:
    client = CLIENTS.get(source)
    if client is None:
        path = Path(source)
        if not path.is_file():
            known = ", ".join(CLIENTS)
            raise UsageError(f"{source} is neither a file nor a client", fix=f"Clients: {known}")
        return [path]
    # The project's own file comes last: it is the nearer one.
    places = dict.fromkeys((client.path("user", root, home), client.path("project", root, home)))
    present = [path for path in places if path.is_file()]
    if not present:
        looked = ", ".join(map(str, places))
        raise UsageError(f"{client.title} has no configuration here", fix=f"Looked for {looked}")
    return present


def _entries(path: Path, root: Path) -> dict[str, Any]:
    try:
        real = path.resolve()
        data = small_bytes(real.parent, real.name, LARGEST)
        if data is None:
            raise ValueError(f"not a plain file of at most {LARGEST} bytes")
        text = data.decode("utf-8-sig")
        content = tomllib.loads(text) if path.suffix == ".toml" else jsonc.parse(text)
    except (OSError, ValueError, RecursionError) as problem:
        raise ConfigError(f"cannot read {path} ({problem})", fix="Correct the file") from None
    groups = [content.get(key) for key in _KEYS]
    groups.append(_of_directory(content, root))
    tables = [group for group in groups if isinstance(group, Mapping)]
    if not tables and not _belongs_to_client(path):
        raise ConfigError(f"{path} has no mcpServers")
    return {str(name): entry for table in tables for name, entry in table.items()}


def _of_directory(content: Mapping[str, Any], root: Path) -> Any:
    """Return what Claude Code keeps for one directory in the user's file: its default scope."""
    projects = content.get("projects")
    here = projects.get(str(root.resolve())) if isinstance(projects, Mapping) else None
    return here.get("mcpServers") if isinstance(here, Mapping) else None


def _belongs_to_client(path: Path) -> bool:
    """Tell whether a file holds a client's other settings too, and may have no servers."""
    names = {client.user_file for client in CLIENTS.values()}
    names |= {client.project_file for client in CLIENTS.values()}
    return any(path.as_posix().endswith(f"/{name}") for name in names)


def _config(name: str, entry: Any, root: Path, home: Path, project: str) -> ServerConfig:
    """Return one entry, whichever client wrote it; ``ConfigError`` if it cannot be taken over."""
    values = dict(entry) if isinstance(entry, Mapping) else {}
    for shape in _SHAPES:
        values = shape(name, values)
    values = _each_text(values, lambda text: _in_our_words(name, text, root, home))
    config = read_config(name, values, project=project)
    permissions = {str(tool): False for tool in _texts(values.get("disabled_tools"))}
    permissions |= {str(tool): False for tool in _texts(values.get("excludeTools"))}
    seconds = _seconds(values) or config.call_seconds
    return replace(config, tool_permissions=permissions, call_seconds=seconds)


def _codex(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Credentials that are named by their variable, and a server that is switched off."""
    headers = dict(values.get("http_headers") or values.get("headers") or {})
    if variable := values.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    for header, variable in (values.get("env_http_headers") or {}).items():
        headers[header] = f"${{{variable}}}"
    env = {**{str(n): f"${{{n}}}" for n in _texts(values.get("env_vars"))}, **_env(values)}
    enabled = values.get("enabled", True) is not False
    return {
        **values,
        "headers": headers,
        "env": env,
        "disabled": values.get("disabled") or not enabled,
    }


def _zed(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """A command with its arguments inside, as earlier versions of Zed write it."""
    if values.get("source") == "extension" or ("settings" in values and not values.get("command")):
        raise ConfigError(f"server {name}: it belongs to an extension of Zed")
    command = values.get("command")
    if not isinstance(command, Mapping):
        return values
    inner = {"args": command.get("args"), "env": command.get("env") or {}}
    return {**values, **inner, "command": command.get("path")}


def _opencode(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """A command that is a list, and an environment by another name."""
    command = values.get("command")
    if isinstance(command, list) and command:
        values = {**values, "command": command[0], "args": command[1:]}
    if isinstance(values.get("environment"), Mapping):
        values = {**values, "env": values["environment"]}
    return values


_SHAPES: tuple[Callable[[str, dict[str, Any]], dict[str, Any]], ...] = (_zed, _opencode, _codex)


def _in_our_words(name: str, text: str, root: Path, home: Path) -> str:
    if _INPUT_PLACEHOLDER.search(text):
        raise ConfigError(
            f"server {name}: it needs a value that VS Code asks for ({text[:80]})",
            fix="Add it with `evercontext servers add`, with ${NAME} for a variable",
        )
    text = text.replace("${workspaceFolder}", str(root)).replace("${userHome}", str(home))
    return _ENVIRONMENT.sub(lambda match: f"${{{next(filter(None, match.groups()))}}}", text)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(item, change) for key, item in value.items()}
    return [_each_text(item, change) for item in value] if isinstance(value, list) else value


def _seconds(values: Mapping[str, Any]) -> float | None:
    """Return how long a call may take: Codex says it in seconds, Gemini CLI and opencode in ms."""
    seconds = values.get("tool_timeout_sec")
    if seconds is None and isinstance(values.get("timeout"), int | float):
        seconds = values["timeout"] / 1000
    usable = isinstance(seconds, int | float) and 0 < seconds <= 86_400
    return float(seconds) if usable and seconds is not None else None


def _env(values: Mapping[str, Any]) -> Mapping[str, Any]:
    env = values.get("env")
    return env if isinstance(env, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
