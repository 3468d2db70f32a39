"""Instructions from outside the root: the user's own, and those of the directories above it.

A project inside a larger repository obeys the larger one's AGENTS.md too, up to where git begins.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from evercontext.files.small_files import small_bytes

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
    for name in NAMES:
        content = None if (folder / name).is_symlink() else small_bytes(folder, name)
        with suppress(UnicodeDecodeError):
            if content is not None:
                return content.decode("utf-8")[:LONGEST].strip()
    return ""
