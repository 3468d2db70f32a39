"""Read small files that configure us: bounded, plain files, never waiting.

Anybody may have written them. A pipe, a device, a directory or what may not be read counts as not
there; a link is followed as long as it stays in the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from evercontext.errors import EverContextError
from evercontext.files.contained_paths import Root
from evercontext.files.file_io import check_kind
from evercontext.files.policy import FilePolicy

MOST_BYTES = 1 << 20
_ANY = FilePolicy(max_bytes=1 << 62, protected=(), hard_links=True)
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def first_bytes(folder: Path, name: str, most: int) -> bytes | None:
    """Return the beginning of a plain file below ``folder``, if there is one."""
    try:
        with Root.open(folder) as root, root.file(name, _ANY) as path:
            kernel = root.kernel
            fd = kernel.open(path.name, _PLAIN, dir_fd=path.dir_fd)
            try:
                check_kind(kernel.fstat(fd), _ANY)
                return _read(fd, most)
            finally:
                kernel.close(fd)
    except (EverContextError, OSError):
        return None


def small_bytes(folder: Path, name: str, most: int = MOST_BYTES) -> bytes | None:
    """Return the content of a plain file below ``folder``, if there is one of at most that size."""
    data = first_bytes(folder, name, most + 1)
    return None if data is None or len(data) > most else data


def small_text(folder: Path, name: str, most: int = MOST_BYTES) -> str | None:
    """Return it as text; what is not UTF-8 is replaced."""
    data = small_bytes(folder, name, most)
    return None if data is None else data.decode("utf-8", "replace")


def _read(fd: int, most: int) -> bytes:
    with open(fd, "rb", buffering=0, closefd=False) as file:
        pieces = []
        while most > 0 and (piece := file.read(min(most, 1 << 16))):
            pieces.append(piece)
            most -= len(piece)
    return b"".join(pieces)
