"""Create folders of ours: private ones, and the one inside a project."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER = ".evercontext"


def make_private(folder: Path) -> None:
    """Make a folder and the parents it lacks, closed to other users whatever the umask says.

    ``mkdir(parents=True, mode=…)`` gives the mode to the last folder alone. A folder that is there
    already and is ours, made by an earlier version perhaps, is closed.
    """
    if not folder.parent.is_dir():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(OSError):  # where it cannot be closed it is as it was
        _close(folder)


def prepare_folder(root: Path) -> Path:
    """Make our folder of a tree; git is told to leave it alone."""
    folder = root / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    # Created or left alone: whatever has this name already, a link above all, is never written.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):
        ignore_file = os.open(folder / ".gitignore", flags, 0o644)
        os.write(ignore_file, b"*\n")
        os.close(ignore_file)
    return folder


def _close(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        there = os.fstat(fd)
        if there.st_uid == os.geteuid() and there.st_mode & 0o077:
            os.fchmod(fd, stat.S_IMODE(there.st_mode) & ~0o077)
    finally:
        os.close(fd)
