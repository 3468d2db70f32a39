"""Restrict a command by Landlock: rights on subtrees.

Rights only ever add up going down a tree: a subtree cannot be taken back from a right on its
parent. So a directory that holds something protected gets no right itself; its other children do.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEEDED = 6
"""The first version with scopes: before it, a command could signal any process of the user."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE, MAKE_CHAR, MAKE_BLOCK = 0b11 << 4, 1 << 6, 1 << 11
MAKE = 0b1_0111_1000_0000  # directories, files, sockets, pipes, symbolic links
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

HANDLED = (1 << 16) - 1
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = READ | WRITE_FILE | REMOVE | MAKE | REFER | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE

TCP = 0b11
SCOPES = 0b11
"""No abstract socket and no signal reaches outside."""

_CREATE_RULESET = 444


def version() -> int:
    """Return the kernel's Landlock version, 0 if it has none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, 0, 1)))


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rights of a command. What is not listed is refused."""

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    devices: tuple[Path, ...]
    listable: tuple[Path, ...] = ()
    network: bool = False

    def plan(self) -> dict[str, Any]:
        """Return the rules as the supervisor applies them."""
        rights = [(self.readable, READ), (self.writable, WRITE)]
        rights += [(self.devices, DEVICE), (self.listable, READ_DIR)]
        rules = [[os.path.realpath(path), right] for paths, right in rights for path in paths]
        return {"fs": HANDLED, "net": 0 if self.network else TCP, "scoped": SCOPES, "rules": rules}


def subtrees(root: Path, excluded: Iterable[Path]) -> Iterator[Path]:
    """Yield the largest subtrees of ``root`` that hold nothing excluded."""
    below = os.fspath(root).rstrip(os.sep) + os.sep
    inside = {path for path in excluded if path == root or os.fspath(path).startswith(below)}
    above: set[Path] = set()
    for path in inside:
        for parent in path.parents:
            if parent in above:
                break  # and so are all that are further up
            above.add(parent)
    yield from _free(root, inside, above)


def _free(place: Path, excluded: set[Path], above: set[Path]) -> Iterator[Path]:
    if place in excluded:
        return
    if place not in above:
        yield place
        return
    if not place.is_dir():
        return
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        if not entry.is_symlink():
            yield from _free(Path(entry.path), excluded, above)
