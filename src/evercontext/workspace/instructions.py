"""Read instructions for the agent: the user's own, those above the root, and the project's.

A project inside a larger repository obeys the larger one's AGENTS.md too, up to where git begins.
"""

from __future__ import annotations

import asyncio
import os
import stat
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
        if text := _read(folder, ours=folder == home):
            parts.append(f"(from {folder})\n{text}")
    return "\n\n".join(parts)


def _is_trusted(file: Path) -> bool:
    """True for a file of this user or of root: in a shared folder anybody can put one.

    What it says becomes part of the instructions, so nobody else may write it either.
    """
    try:
        status = file.lstat()
    except OSError:
        return False
    others_write = status.st_mode & 0o002 != 0
    return stat.S_ISREG(status.st_mode) and status.st_uid in (os.geteuid(), 0) and not others_write


def _above(root: Path) -> list[Path]:
    if (root / ".git").exists():
        return []
    folders: list[Path] = []
    for folder in root.parents:
        folders.append(folder)
        if (folder / ".git").exists():
            return list(reversed(folders))
    return []  # no repository around it: the directories above belong to others


def _read(folder: Path, *, ours: bool) -> str:
    for name in NAMES:
        trusted = not (folder / name).is_symlink() and (ours or _is_trusted(folder / name))
        content = small_bytes(folder, name) if trusted else None
        with suppress(UnicodeDecodeError):
            if content is not None:
                return content.decode("utf-8")[:LONGEST].strip()
    return ""
