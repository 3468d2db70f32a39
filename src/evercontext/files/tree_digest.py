"""Hash the state of a tree: same files and contents, same hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from evercontext.errors import EverContextError
from evercontext.files import file_io
from evercontext.files.contained_paths import Parts, Root
from evercontext.files.path_names import parse
from evercontext.files.policy import FilePolicy

MOST_BYTES = 64 << 20
"""Contents that are read for one hash; what lies beyond counts by its size and time."""


def tree_digest(root: Path, names: Iterable[str], most: int = MOST_BYTES) -> str:
    """Hash the named files; one that is not there, or not a plain file, counts by its name."""
    digest, left = hashlib.sha256(), most
    with Root.open(root) as tree:
        for name in sorted(names):
            state, size = _state(tree, name, left)
            left -= size
            digest.update(f"{name}\0{state}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _state(tree: Root, name: str, left: int) -> tuple[str, int]:
    with suppress(EverContextError, OSError):
        return _read(tree, parse(name.rstrip("/")), left)
    return "", 0


def _read(tree: Root, parts: Parts, left: int) -> tuple[str, int]:
    if not parts:
        return "", 0
    with tree.place(parts) as safe:
        status = tree.kernel.lstat(safe.name, safe.dir_fd)
        if status.st_size > left:
            return f"{status.st_size} {status.st_mtime_ns}", 0
        policy = FilePolicy(max_bytes=left, protected=(), hard_links=True)
        return file_io.read(safe, policy).sha256, status.st_size
