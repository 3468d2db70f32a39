"""Whether the index folder found in a tree is ours: a repository may bring one along.

A clone can hold links that lead our writes elsewhere, or an index made to mislead. Neither is
followed, opened or repaired: the index then lies at home.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evercontext.errors import ProcessProblem
from evercontext.files.names import printable
from evercontext.index.walker import GIT, in_git
from evercontext.process.run import run
from evercontext.settings import process_environment

_OPENED = (".gitignore", "index.db", "spool")
"""How the names begin that are opened in the folder; case is ignored, as some disks do."""
_SECONDS = 20.0


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
    # Variables of a hook around us would make git look at another repository.
    given = process_environment().items()
    environment = {name: value for name, value in given if not name.startswith("GIT_")}
    listing = (*GIT, "ls-files", "-z", "--cached", "--", f":(icase){folder.name}")
    try:
        done = await run(listing, cwd=folder.parent, timeout=_SECONDS, env=environment)
    except ProcessProblem:
        return "git cannot be asked whether the repository brought it"
    if done.stdout:
        return f"{folder.name} is tracked by git"
    return None if done.ok else "git does not say whether the repository brought it"
