"""Let one holder at a time have a name, across processes; whatever ends a process lets it go."""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evercontext.errors import EverContextError

_SET_LOCK = getattr(fcntl, "F_OFD_SETLK", None)


@contextmanager
def hold_name(file: Path, name: str, taken: EverContextError) -> Iterator[None]:
    """Hold a name in a lock file for the block; raise ``taken`` where another holds it."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            _lock(fd, zlib.crc32(name.encode()))
        except OSError:
            raise taken from None
        yield
    finally:
        os.close(fd)


def _lock(fd: int, place: int) -> None:
    if _SET_LOCK is None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    else:
        # Such a lock belongs to the open file, so that it also holds within one process.
        fcntl.fcntl(fd, _SET_LOCK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, place, 1, 0))
