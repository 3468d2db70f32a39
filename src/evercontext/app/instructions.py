"""Instructions from outside the root: the user's own, and those of the directories above it.

A project inside a larger repository obeys the larger one's AGENTS.md too, up to where git begins.
"""

from __future__ import annotations

import stat
from pathlib import Path

NAMES = ("AGENTS.md", "CLAUDE.md")
LONGEST = 32_000


def outer_instructions(root: Path, home: Path) -> str:
    """The user's instructions, then those above the root, the outermost first."""
    parts = []
    for folder in (home, *_above(root.resolve())):
        if found := _read(folder):
            parts.append(f"(from {folder})\n{found}")
    return "\n\n".join(parts)


def _above(root: Path) -> list[Path]:
    if (root / ".git").exists():
        return []
    found: list[Path] = []
    for folder in root.parents:
        found.append(folder)
        if (folder / ".git").exists():
            return list(reversed(found))
    return []  # no repository around it: what lies above is somebody else's


def _read(folder: Path) -> str:
    for path in (folder / name for name in NAMES):
        try:
            if stat.S_ISREG(path.lstat().st_mode):
                with path.open(encoding="utf-8") as file:
                    return file.read(LONGEST).strip()
        except (OSError, UnicodeDecodeError):
            continue
    return ""
