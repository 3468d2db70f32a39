"""Links and empty directories that a command made: they have no content to be journalled by."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evercontext.errors import EverContextError
from evercontext.files.paths import Root


@dataclass(frozen=True, slots=True)
class Made:
    """What one command made beside files."""

    trace_id: str
    at: int
    links: tuple[tuple[str, str], ...] = ()
    """Path and target."""
    directories: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return it as it is written."""
        return {"kind": "made", **{name: getattr(self, name) for name in self.__slots__}}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Made:
        """Read it back."""
        links = tuple((path, target) for path, target in record["links"])
        return cls(record["trace_id"], record["at"], links, tuple(record["directories"]))

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path, as a person reads it."""
        return (*(path for path, _ in self.links), *(f"{path}/" for path in self.directories))


def standing(root: Root, made: Made) -> list[str]:
    """Return what is still as the command left it: the same link, the directory still empty."""
    links = [path for path, target in made.links if _target(root, path) == target]
    return links + [f"{path}/" for path in made.directories if _is_empty(root, path)]


def remove(root: Root, made: Made) -> list[str]:
    """Remove what still stands, innermost first; return what is gone."""
    gone: list[str] = []
    for path in standing(root, made):
        if not path.endswith("/") and _do(root, path, root.kernel.unlink):
            gone.append(path)
    # A directory may hold nothing but others, which go before it.
    for path in sorted(made.directories, reverse=True):
        if _do(root, path, root.kernel.rmdir):
            gone.append(f"{path}/")
    return gone


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
