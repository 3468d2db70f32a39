"""Choose the folder of an index: in the tree, or in the home folder where that is not safe.

A repository may bring an index folder along: links that lead our writes elsewhere, or an index made
to mislead. Neither is followed, opened or repaired: the index then lies in the home folder. The
bounds of a search are here as well, for modules that need nothing else of the index.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.files import private_folders
from evercontext.files.path_names import printable_name
from evercontext.index.git_queries import ask_git, in_git

FOLDER, prepare_folder = private_folders.FOLDER, private_folders.prepare_folder
FILE = "index.db"
TOP_K = 5
MOST_RESULTS = 100
LONGEST_KEPT = 2_000
"""Characters of a question that a trace keeps."""


async def index_folder(
    root: Path, home: Path, *, writing: bool = True, tell: Callable[[str], None] | None = None
) -> Path:
    """Return the folder of the index: in the tree if that may be written, else at home.

    A folder that the repository brought along is not used, nor is one that cannot be written;
    ``tell`` hears why.
    """
    real = await asyncio.to_thread(root.resolve)
    if writing and os.access(real, os.W_OK) and not _is_inside_git(real):
        reason = await _why_unusable(real / FOLDER)
        if reason is None:
            return prepare_folder(real)
        if tell:
            tell(f"{reason}, so the index is kept in the home folder")
    folder = home_folder(real, home)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise ConfigError(
            f"no place for the index: {folder.parent}: {problem.strerror}",
            fix="Set EC_HOME to a folder that is yours",
        ) from problem
    return folder


def home_folder(root: Path, home: Path) -> Path:
    """Return where the index of a tree lies that may not be in it."""
    return home / "indexes" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


async def _why_unusable(folder: Path) -> str | None:
    from evercontext.index.location import why_strange

    reason = await why_strange(folder)
    for place in (folder, folder / FILE):
        if reason is None and os.access(place, os.F_OK) and not os.access(place, os.W_OK):
            return f"{place.relative_to(folder.parent)} cannot be written"
    return reason


def _is_inside_git(root: Path) -> bool:
    """True for a repository without a work tree, and for the inside of any: those are git's."""
    bare = (root / "HEAD").is_file() and (root / "objects").is_dir() and (root / "refs").is_dir()
    return bare or ".git" in root.parts


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
            return f"{folder.name}/{printable_name(name)} is a link or not a plain file"
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
