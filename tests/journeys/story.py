"""What the stories share: a script for the model, and a look at files before and after."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One tool call of a script."""
    return {"name": name, "arguments": arguments}


def script(path: Path, *turns: dict[str, Any]) -> str:
    """Write a script and return the model's name."""
    path.write_text("".join(json.dumps(turn, ensure_ascii=False) + "\n" for turn in turns))
    return f"scripted:{path}"


def write(path: str, content: str, mode: str = "overwrite") -> dict[str, Any]:
    """A turn that writes one file."""
    return {"tool_calls": [call("write_file", path=path, content=content, mode=mode)]}


def digest(tree: Path) -> dict[str, str]:
    """Every file below a directory and what is in it."""
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(tree.rglob("*"))
        if path.is_file()
    }
