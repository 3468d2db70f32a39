"""The folder an index lies in, and the bounds of a search: light, for those who only need these."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

FOLDER = ".evercontext"
TOP_K = 5
MOST_RESULTS = 100
LONGEST_QUERY = 2_000


def prepare_folder(root: Path) -> Path:
    """Make the index folder of a tree; git is told to leave it alone."""
    folder = root / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")
    return folder


def index_folder(root: Path, home: Path, *, writing: bool = True) -> Path:
    """Return the folder of the index: in the tree if that may be written, else at home."""
    real = root.resolve()
    if writing and os.access(real, os.W_OK) and not (real / FOLDER).is_symlink():
        return prepare_folder(real)
    folder = home / "indexes" / hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
