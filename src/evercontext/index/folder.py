"""The folder an index lies in, and the bounds of a search: light, for those who only need these."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.files import private_folders

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
    from evercontext.index.trust import why_strange

    reason = await why_strange(folder)
    for place in (folder, folder / FILE):
        if reason is None and os.access(place, os.F_OK) and not os.access(place, os.W_OK):
            return f"{place.relative_to(folder.parent)} cannot be written"
    return reason


def _is_inside_git(root: Path) -> bool:
    """True for a repository without a work tree, and for the inside of any: those are git's."""
    bare = (root / "HEAD").is_file() and (root / "objects").is_dir() and (root / "refs").is_dir()
    return bare or ".git" in root.parts
