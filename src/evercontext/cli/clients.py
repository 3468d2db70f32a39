"""MCP clients whose configuration we can add ourselves to."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.errors import ConfigError

_NAME = "evercontext"


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers, and under which key."""

    file: str
    key: str = "mcpServers"
    in_project: bool = False

    def path(self, root: Path) -> Path:
        """The file for this project."""
        return (root if self.in_project else Path.home()) / self.file


CLIENTS = {
    "project": Client(".mcp.json", in_project=True),
    "claude": Client(".claude.json"),
    "cursor": Client(".cursor/mcp.json"),
    "gemini": Client(".gemini/settings.json"),
    "vscode": Client(".vscode/mcp.json", key="servers", in_project=True),
}


def entry(root: Path) -> dict[str, Any]:
    """How a client starts us for one project."""
    program = Path(sys.argv[0]).absolute()
    command = str(program) if program.name.startswith(_NAME) else _NAME
    return {"command": command, "args": ["mcp", "--root", str(root)]}


def install(client: str, root: Path) -> tuple[Path, bool]:
    """Add our entry and leave all else as it is; return the file and whether it changed."""
    kind = CLIENTS[client]
    path = kind.path(root)
    known = _read(path)
    servers = known.setdefault(kind.key, {})
    if not isinstance(servers, dict):
        raise ConfigError(f"{path}: {kind.key} is not an object", fix="Correct the file")
    if servers.get(_NAME) == entry(root):
        return path, False
    servers[_NAME] = entry(root)
    _replace(path, known)
    return path, True


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise ConfigError(
            f"cannot read {path}: {problem}", fix="Correct it, or add the entry by hand (--print)"
        ) from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must hold one JSON object", fix="Correct the file")
    return found


def _replace(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link into somebody's dotfiles stays one.
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    fresh = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(mode)
    fresh.replace(target)
