"""Lock a path for one writer at a time, across threads and processes."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from evercontext.files.open_file import is_in_place

_STRIPES = 256
_SET_LOCK = getattr(fcntl, "F_OFD_SETLKW", None)


class PathLocks:
    """Byte ranges of one file: the byte a path hashes to is its lock."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._fd = _open(file)
        self._threads = [threading.Lock() for _ in range(_STRIPES)]

    @contextmanager
    def hold(self, paths: Iterable[str]) -> Iterator[None]:
        """Keep every other writer of ``paths`` waiting."""
        stripes = {zlib.crc32(path.encode("utf-8", "surrogatepass")) % _STRIPES for path in paths}
        with ExitStack() as held:
            # in order, so that two holders of several paths cannot wait for each other
            for stripe in sorted(stripes):
                held.enter_context(self._threads[stripe])
                self._lock(stripe, fcntl.F_WRLCK)
                held.callback(self._lock, stripe, fcntl.F_UNLCK)
            yield

    def ensure_in_place(self) -> None:
        """Go on with the file that other processes lock, where ours was removed or replaced."""
        if self._fd >= 0 and not is_in_place(self._file, self._fd):
            fresh = _open(self._file)
            try:
                # Under the same number: other threads use it at this moment.
                os.dup2(fresh, self._fd, inheritable=False)
            finally:
                os.close(fresh)

    def close(self) -> None:
        """Release everything."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _lock(self, stripe: int, kind: int) -> None:
        if _SET_LOCK is None:  # macOS: per process, which the threads' own locks make good
            operation = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX
            fcntl.lockf(self._fd, operation, 1, stripe)
        else:
            fcntl.fcntl(self._fd, _SET_LOCK, struct.pack("hhqqi4x", kind, 0, stripe, 1, 0))


def _open(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
