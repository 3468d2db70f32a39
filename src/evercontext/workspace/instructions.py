"""Read instructions for the agent: the user's own, those above the root, and the project's.

A project inside a larger repository obeys the larger one's AGENTS.md too, up to where git begins.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from evercontext.domain.tool import Caller
from evercontext.errors import FileProblem, PolicyError
from evercontext.files.small_files import small_bytes
from evercontext.workspace.workspace import Workspace

NAMES = ("AGENTS.md", "CLAUDE.md")
LONGEST = 32_000


async def instructions_of(workspace: Workspace, root: Path, home: Path, caller: Caller) -> str:
    """Return the instructions from outside the root, then the project's own."""
    parts = [await asyncio.to_thread(outer_instructions, root, home)]
    for name in NAMES:
        try:
            parts.append((await workspace.read(name, caller)).content[:LONGEST])
            break
        except (FileProblem, PolicyError):
            continue
    return "\n\n".join(part for part in parts if part)


def outer_instructions(root: Path, home: Path) -> str:
    """Return the user's instructions, then those above the root, the outermost first."""
    parts = []
    for folder in (home, *_above(root.resolve())):
        if text := _read(folder):
            parts.append(f"(from {folder})\n{text}")
    return "\n\n".join(parts)


def _above(root: Path) -> list[Path]:
    if (root / ".git").exists():
        return []
    folders: list[Path] = []
    for folder in root.parents:
        folders.append(folder)
        if (folder / ".git").exists():
            return list(reversed(folders))
    return []  # no repository around it: the directories above belong to others


def _read(folder: Path) -> str:
    for name in NAMES:
        content = None if (folder / name).is_symlink() else small_bytes(folder, name)
        with suppress(UnicodeDecodeError):
            if content is not None:
                return content.decode("utf-8")[:LONGEST].strip()
    return ""
