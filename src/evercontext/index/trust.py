"""Whether the index folder found in a tree is ours: a repository may bring one along.

A clone can hold links that lead our writes elsewhere, or an index made to mislead. Neither is
followed, opened or repaired: the index then lies at home.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evercontext.files.path_names import printable
from evercontext.index.git import ask_git, in_git

_OPENED = (".gitignore", "index.", "spool", "announced", "corpus.", "analysing")
"""How the names begin that are opened in the folder; case is ignored, as some disks do."""


async def why_strange(folder: Path) -> str | None:
    """Return why an index folder must not be used, or ``None`` if it may."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return f"{folder.name} is not a plain folder"
    except FileNotFoundError:
        return None
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in sorted(names):
        if name.lower().startswith(_OPENED) and not _is_plain(folder / name):
            return f"{folder.name}/{printable(name)} is a link or not a plain file"
    return await _why_tracked(folder) if names else None


def _is_plain(file: Path) -> bool:
    try:
        seen = os.lstat(file)
    except FileNotFoundError:
        # Another process ended meanwhile and took its log along.
        return True
    return stat.S_ISREG(seen.st_mode) and seen.st_nlink == 1


async def _why_tracked(folder: Path) -> str | None:
    if not in_git(folder.parent):
        return None
    done = await ask_git(
        folder.parent, "ls-files", "-z", "--cached", "--", f":(icase){folder.name}"
    )
    if done is None:
        return "git cannot be asked whether the repository brought it"
    if done.stdout:
        return f"{folder.name} is tracked by git"
    return None if done.exit_code == 0 else "git does not say whether the repository brought it"
