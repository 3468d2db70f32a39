"""Visit every directory of a tree, however deep, whatever its modes.

A command may leave a tree deeper than the interpreter's stack, paths longer than the kernel takes,
and folders that it forbade us to read. So this walk holds one descriptor at a time, goes by names
from folder to folder, and opens what is its owner's to open. What it could not see, it says.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evercontext.files.system_calls import O_PATH

Identity = tuple[int, int]
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_USE = 0o700


@dataclass(frozen=True, slots=True)
class Folder:
    """One directory while it is open."""

    parts: tuple[str, ...]
    fd: int
    identity: Identity
    directories: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """Everything in it."""
        return frozenset((*self.directories, *self.others))

    def identity_of(self, name: str) -> Identity | None:
        """Return what tells an entry from another of its name."""
        with suppress(OSError):
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            return status.st_dev, status.st_ino
        return None


Look = Callable[[Folder], Iterable[str]]
"""Looks at a folder and returns which of its directories to enter."""


@dataclass(slots=True)
class Walked:
    """What a walk could not see, and what it found closed."""

    unseen: list[str] = field(default_factory=list)
    """Folders that could have been written, and cannot be read."""
    opened: list[Identity] = field(default_factory=list)
    """Folders that their owner could not use."""


@dataclass(slots=True)
class _Level:
    name: str
    identity: Identity
    pending: list[str]
    mode: int | None
    """The mode to give back on leaving."""


def walk(root: Path, look: Look, leave_open: Collection[Identity] | None = None) -> Walked:
    """Show every folder to ``look``, each before what lies below it.

    A folder that its owner could not use is opened for the look and closed again. With
    ``leave_open`` only those listed there are closed again: the others a command has closed.
    """
    walked = Walked()
    fd = os.open(root, _OPEN & ~os.O_NOFOLLOW)
    try:
        levels = [_entered("", (), fd, look, None)]
        while levels:
            level = levels[-1]
            if level.pending:
                parts = (*(outer.name for outer in levels[1:]), level.pending.pop())
                below = _enter(fd, parts, walked)
                if below is None:
                    continue
                below_fd, closed = below
                os.close(fd)
                fd = below_fd
                mode = closed if leave_open is None or _identity(fd) in leave_open else None
                levels.append(_entered(parts[-1], parts, fd, look, mode))
                continue
            levels.pop()
            if levels:
                fd = _leave(fd, root, levels, level, walked)
    finally:
        os.close(fd)
    return walked


def make_usable(name: str, dir_fd: int) -> None:
    """Give the owner of a directory the right to list, enter and change it."""
    status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & _USE != _USE:
        _unlock(name, dir_fd, status)


def _entered(name: str, parts: tuple[str, ...], fd: int, look: Look, mode: int | None) -> _Level:
    directories: list[str] = []
    others: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            (directories if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    identity = _identity(fd)
    folder = Folder(parts, fd, identity, tuple(sorted(directories)), tuple(sorted(others)))
    return _Level(name, identity, sorted(look(folder), reverse=True), mode)


def _enter(fd: int, parts: tuple[str, ...], walked: Walked) -> tuple[int, int | None] | None:
    """Open a directory; return it with its mode where that had to be changed."""
    name = parts[-1]
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        locked = status.st_mode & 0o500 != 0o500 and os.geteuid() in (status.st_uid, 0)
        if locked and os.geteuid() != 0:
            _unlock(name, fd, status)
        below = os.open(name, _OPEN, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        return None  # gone or replaced by something that holds nothing
    except OSError:
        # What nobody of ours could write holds nothing of ours.
        if os.access(name, os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True):
            walked.unseen.append("/".join(parts))
        return None
    if not locked:
        return below, None
    walked.opened.append((status.st_dev, status.st_ino))
    return below, stat.S_IMODE(status.st_mode)


def _unlock(name: str, fd: int, status: os.stat_result) -> None:
    """Change the mode of exactly this directory: a link in its place is not followed."""
    pinned = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        if _identity(pinned) == (status.st_dev, status.st_ino):
            os.chmod(f"/proc/self/fd/{pinned}", stat.S_IMODE(status.st_mode) | _USE)  # noqa: PTH101
    finally:
        os.close(pinned)


def _leave(fd: int, root: Path, levels: list[_Level], left: _Level, walked: Walked) -> int:
    """Return the folder above; from the root again if somebody moved this one meanwhile."""
    above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    if left.mode is not None and os.geteuid() != 0:
        with suppress(OSError):
            os.fchmod(fd, left.mode)
    if _identity(above) == levels[-1].identity:
        os.close(fd)
        return above
    os.close(above)
    walked.unseen.append("/".join((*(outer.name for outer in levels[1:]), left.name)))
    return _again(fd, root, levels)


def _again(fd: int, root: Path, levels: list[_Level]) -> int:
    """Go down from the root to the deepest folder that still is where it was."""
    here = os.open(root, _OPEN & ~os.O_NOFOLLOW)
    for depth, level in enumerate(levels[1:], start=1):
        try:
            below = os.open(level.name, _OPEN, dir_fd=here)
        except OSError:
            del levels[depth:]
            break
        os.close(here)
        here = below
    os.close(fd)
    return here


def _identity(fd: int) -> Identity:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
