"""Tell whether an open file is still the one that its name leads to."""

from __future__ import annotations

import os
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode."""


def identity_of(path: Path | str) -> Identity | None:
    """Return the identity of the file of this name, or ``None`` where there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_in_place(path: Path | str, descriptor: int, size: int = 0) -> bool:
    """True unless the file was removed, replaced, or cut off to less than ``size``.

    What is written to it then is lost when it closes, or follows half a record and is not read.
    """
    status = os.fstat(descriptor)
    return status.st_size >= size and (status.st_dev, status.st_ino) == identity_of(path)
