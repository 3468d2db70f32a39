"""Servers that other MCP clients already know, read from their configuration files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from evercontext.catalog.server_table import ServerConfig, read_config
from evercontext.cli import jsonc
from evercontext.cli.mcp_install import CLIENTS, LARGEST, NAME
from evercontext.errors import ConfigError, UsageError
from evercontext.files.small_files import small_bytes

_KEYS = ("mcpServers", "mcp_servers", "servers")


def read_servers(
    source: str, root: Path, home: Path, project: str = ""
) -> tuple[list[ServerConfig], list[str]]:
    """Return what a client (or a file) has, and why the rest was left out."""
    configs: dict[str, ServerConfig] = {}
    skipped: list[str] = []
    for path in _files(source, root, home):
        for name, entry in _entries(path).items():
            if name == NAME:
                continue
            try:
                configs[name] = read_config(name, entry, project=project)
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
    found = [path for path in places if path.is_file()]
    if not found:
        looked = ", ".join(map(str, places))
        raise UsageError(f"{client.title} has no configuration here", fix=f"Looked for {looked}")
    return found


def _entries(path: Path) -> dict[str, Any]:
    try:
        real = path.resolve()
        data = small_bytes(real.parent, real.name, LARGEST)
        if data is None:
            raise ValueError(f"not a plain file of at most {LARGEST} bytes")
        text = data.decode("utf-8-sig")
        content = tomllib.loads(text) if path.suffix == ".toml" else jsonc.parse(text)
    except (OSError, ValueError, RecursionError) as problem:
        raise ConfigError(f"cannot read {path} ({problem})", fix="Correct the file") from None
    found = next((content[key] for key in _KEYS if isinstance(content.get(key), dict)), None)
    if found is None:
        raise ConfigError(f"{path} has no mcpServers")
    return {str(name): entry for name, entry in found.items()}
