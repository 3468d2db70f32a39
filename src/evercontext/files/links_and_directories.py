"""Record and remove links, empty directories and installed folders a command created.

Installed programs are too many to be journalled one by one. A new folder of them is known by its
identity, and an undo moves it away whole.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.errors import EverContextError
from evercontext.files.contained_paths import Root
from evercontext.files.private_folders import make_private, prepare_folder


@dataclass(frozen=True, slots=True)
class Creations:
    """What one command made beside files."""

    trace_id: str
    at: int
    links: tuple[tuple[str, str], ...] = ()
    """Path and target."""
    directories: tuple[str, ...] = ()
    folders: tuple[tuple[str, int, int], ...] = ()
    """Of installed programs or build results: path, and the numbers that tell it from others."""

    def record(self) -> dict[str, Any]:
        """Return it as it is written."""
        return {"kind": "made", **{name: getattr(self, name) for name in self.__slots__}}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Creations:
        """Read it back."""
        links = tuple((path, target) for path, target in record["links"])
        folders = tuple((path, dev, ino) for path, dev, ino in record.get("folders", ()))
        return cls(record["trace_id"], record["at"], links, tuple(record["directories"]), folders)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path, as a person reads it."""
        directories = (*self.directories, *(path for path, _, _ in self.folders))
        return (*(path for path, _ in self.links), *(f"{path}/" for path in directories))


@dataclass(frozen=True, slots=True)
class RemovedCreations:
    """What an undo removed of it."""

    trace_id: str
    """The task that had made it."""
    at: int
    paths: tuple[str, ...]
    during: str = ""
    """The task that took back a part of its own work while it ran, as a repair does."""

    def record(self) -> dict[str, Any]:
        """Return it as it is written."""
        return {"kind": "unmade", **{name: getattr(self, name) for name in self.__slots__}}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RemovedCreations:
        """Read it back."""
        return cls(record["trace_id"], record["at"], tuple(record["paths"]), record["during"])


def standing(root: Root, creations: Creations) -> list[str]:
    """Return what is still as the command left it: the same link, the directory still empty.

    A folder of installed programs is still the same, whatever was installed there since.
    """
    links = [path for path, target in creations.links if _target(root, path) == target]
    folders = [f"{path}/" for path, *known in creations.folders if _identity(root, path) == known]
    return links + [f"{path}/" for path in creations.directories if _is_empty(root, path)] + folders


def remove(root: Root, creations: Creations, away: Path) -> dict[str, Path | None]:
    """Remove what still stands, innermost first; return what is gone, and where to.

    Folders of installed programs are moved to ``away``, or into our folder of the tree if that is
    on another disk: somebody may have put something into them since.
    """
    gone: dict[str, Path | None] = {}
    for path, *known in creations.folders:
        if _identity(root, path) == known and (place := _moved(root, path, away)):
            gone[f"{path}/"] = place
    for path in standing(root, creations):
        if not path.endswith("/") and _do(root, path, root.kernel.unlink):
            gone[path] = None
    # A directory may hold nothing but others, which go before it.
    for path in sorted(creations.directories, reverse=True):
        if _do(root, path, root.kernel.rmdir):
            gone[f"{path}/"] = None
    return gone


def _identity(root: Root, path: str) -> list[int] | None:
    with suppress(OSError, EverContextError), root.place(tuple(path.split("/"))) as safe:
        if not safe.missing:
            there = root.kernel.lstat(safe.name, safe.dir_fd)
            return [there.st_dev, there.st_ino] if stat.S_ISDIR(there.st_mode) else None
    return None


def _moved(root: Root, path: str, away: Path) -> Path | None:
    for in_tree in (False, True):
        with suppress(OSError, EverContextError), root.place(tuple(path.split("/"))) as safe:
            place = prepare_folder(root.path) / "quarantine" if in_tree else away
            make_private(place)
            target = place / f"{safe.name.lstrip('.')[:200]}-{secrets.token_hex(4)}"
            os.rename(safe.name, target, src_dir_fd=safe.dir_fd)
            return target
    return None


def target_of(root: Root, name: str, fd: int) -> str:
    """Return where a link points."""
    return os.readlink(name, dir_fd=fd)


def _target(root: Root, path: str) -> str | None:
    with suppress(OSError, EverContextError), root.place(tuple(path.split("/"))) as safe:
        if not safe.missing:
            return target_of(root, safe.name, safe.dir_fd)
    return None


def _is_empty(root: Root, path: str) -> bool:
    with suppress(OSError, EverContextError):
        fd = root.beneath.open(root.fd, tuple(path.split("/")), os.O_RDONLY | os.O_DIRECTORY)
        try:
            entries = root.kernel.names(fd)
            return all(stat.S_ISDIR(root.kernel.lstat(name, fd).st_mode) for name in entries)
        finally:
            root.kernel.close(fd)
    return False


def _do(root: Root, path: str, act: Any) -> bool:
    parts: Sequence[str] = path.split("/")
    with suppress(OSError, EverContextError), root.place(tuple(parts)) as safe:
        if not safe.missing:
            act(safe.name, safe.dir_fd)
            return True
    return False
