"""Remove the temporary directory of a command, whatever the command made of it.

Part of the supervisor: standard library only.
"""

# pathlib would cost a third of the supervisor's start
# ruff: noqa: PTH101, PTH106

from __future__ import annotations

import contextlib
import os

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(path: str) -> None:
    """Remove a folder and everything below it; what cannot be removed stays.

    One level at a time, by descriptors: neither depth nor the length of a path ends it early, and
    folders without rights get them back. The command must have ended: ".." leads back up.
    """
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        _empty(os.open(path, _FOLDER))
        os.rmdir(path)


def _empty(folder: int) -> None:
    """Remove everything in an open folder, and close it."""
    levels = [_remove_files(folder)]
    while levels:
        if levels[-1]:
            folder = _descend(folder, levels)
            continue
        levels.pop()
        if levels:
            folder = _replace(folder, os.open("..", _FOLDER, dir_fd=folder))
            with contextlib.suppress(OSError):
                os.rmdir(levels[-1].pop(), dir_fd=folder)
    os.close(folder)


def _descend(folder: int, levels: list[list[str]]) -> int:
    """Enter the next folder; one that cannot be entered is left out."""
    below = _open(levels[-1][-1], folder)
    if below is None:
        levels[-1].pop()
        return folder
    levels.append(_remove_files(below))
    return _replace(folder, below)


def _replace(folder: int, other: int) -> int:
    os.close(folder)
    return other


def _remove_files(folder: int) -> list[str]:
    """Remove what is no folder; return the names of the folders."""
    listed: list[tuple[str, bool]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if not is_folder:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in listed if is_folder]


def _open(name: str, above: int) -> int | None:
    try:
        os.chmod(name, 0o700, dir_fd=above)
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError:
        return None
