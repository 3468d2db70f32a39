"""Allow one indexing process at a time; the system frees the lease if it dies.

A lock on a file beside the index, not a row with an end: whoever is killed loses it at once, and
no clock can prolong or shorten it.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from evercontext.errors import StoreBusy
from evercontext.files.os_errors import explained

LOCK = "index.lock"
EMBEDDING = "index.embedding.lock"
"""Embedding takes long, and keeps nobody from indexing."""
_LOOK_AGAIN = 0.05
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_HELD = (errno.EWOULDBLOCK, errno.EACCES)


class IndexLease:
    """The lock of one index; the same object may hold it several times over."""

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        self.folder = folder
        self._file = folder / name
        self._fd = -1
        self._depth = 0

    @asynccontextmanager
    async def hold(self, patience: float = 0.0) -> AsyncIterator[None]:
        """Hold the right to index; wait for it up to ``patience`` seconds, then ``StoreBusy``."""
        waited = 0.0
        while not self._take():
            if waited >= patience:
                raise StoreBusy(
                    "another process is indexing this tree", fix="Wait, it will be done"
                )
            await asyncio.sleep(_LOOK_AGAIN)
            waited += _LOOK_AGAIN
        try:
            yield
        finally:
            self._release()

    def _take(self) -> bool:
        if self._depth == 0 and not self._lock():
            return False
        self._depth += 1
        return True

    def _lock(self) -> bool:
        with explained(writing=True):
            fd = os.open(self._file, _FLAGS, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(fd)
            if problem.errno in _HELD:
                return False
            raise
        self._fd = fd
        return True

    def _release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            os.close(self._fd)
            self._fd = -1
