"""Append records and contents to the files of the journal.

Each process writes its own segment and holds a lock on it while it lives, so that a segment
without a lock is one whose owner is gone. A record is a line ``crc32 json``; a content follows its
record as raw bytes. A torn end, left by a crash, is recognised and ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.errors import IoFailed
from evercontext.files.clock import journal_clock
from evercontext.files.open_file import is_in_place
from evercontext.files.os_errors import explained
from evercontext.files.system_calls import Kernel

LIVE, CLOSED = ".seg", ".done"
REMOVED = "the undo journal was removed or cut off while it was written"


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """Where a content lies."""

    file: Path
    offset: int
    size: int

    def load(self) -> bytes:
        """Return the bytes; fewer if the segment was damaged."""
        with self.file.open("rb") as segment:
            segment.seek(self.offset)
            return segment.read(self.size)


def encode(record: dict[str, Any], blob: bytes | None = None) -> bytes:
    """Return a record, and the content that belongs to it, as they are written."""
    body = json.dumps(record, separators=(",", ":")).encode()
    line = b"%08x %s\n" % (zlib.crc32(body), body)
    return line if blob is None else line + blob + b"\n"


def scan(path: Path) -> Iterator[tuple[dict[str, Any], SegmentPlace | None]]:
    """Yield every whole record of a segment with the place of its content, if it has one."""
    try:
        segment = path.open("rb")
    except FileNotFoundError:
        return
    with segment:
        length = os.fstat(segment.fileno()).st_size
        for line in iter(segment.readline, b""):
            record = _parse(line)
            if record is None:
                return
            if "blob" not in record:
                yield record, None
                continue
            place = SegmentPlace(path, segment.tell(), record["size"])
            if place.offset + place.size + 1 > length:
                return
            segment.seek(place.size + 1, os.SEEK_CUR)
            yield record, place


def _parse(line: bytes) -> dict[str, Any] | None:
    checksum, _, body = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
        return None
    record: dict[str, Any] = json.loads(body)
    return record


class Segment:
    """The segment this process writes. Threads share one flush to disk where they can."""

    def __init__(self, directory: Path, kernel: Kernel) -> None:
        self._kernel = kernel
        with explained(writing=True):
            self.path, self._fd = _create(directory, kernel)
            _sync_directory(directory, kernel)
        self._state = threading.Condition()
        self._size = 0
        self._synced = 0
        self._syncing = False
        self.broken = False

    def append(self, data: bytes) -> int:
        """Add whole records; return the offset that must be synced for them to be durable."""
        with self._state:
            self._check()
            try:
                with explained(writing=True):
                    self._write(data)
            except BaseException:
                self._take_back()
                raise
            self._size += len(data)
            return self._size

    def sync(self, offset: int) -> None:
        """Return when everything before ``offset`` is on the disk."""
        with self._state:
            while True:
                self._check()
                if self._synced >= offset:
                    return
                if not self._syncing:
                    break
                self._state.wait()
            self._syncing, reached = True, self._size
        failed = True
        try:
            with explained(writing=True):
                self._kernel.fdatasync(self._fd)
            if not self.in_place:
                raise IoFailed(REMOVED, fix="Try again")
            failed = False
        finally:
            with self._state:
                self._syncing = False
                # after a failed flush the kernel forgets what was dirty: never trust it again
                self.broken = self.broken or failed
                self._synced = self._synced if failed else max(self._synced, reached)
                self._state.notify_all()

    @property
    def in_place(self) -> bool:
        """False once it was removed, replaced or cut off: what is written then is never read."""
        return is_in_place(self.path, self._fd, self._size)

    def close(self, *, clean: bool = True) -> None:
        """Stop writing; a clean end needs no recovery."""
        if clean and not self.broken:
            with suppress(OSError):
                if self.in_place:
                    self.path.rename(self.path.with_suffix(CLOSED))
        with suppress(OSError):
            self._kernel.close(self._fd)

    def _check(self) -> None:
        if self.broken:
            raise IoFailed("io error")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._kernel.write(self._fd, view) :]

    def _take_back(self) -> None:
        try:
            self._kernel.truncate(self._fd, self._size)
        except OSError:
            self.broken = True


def _create(directory: Path, kernel: Kernel) -> tuple[Path, int]:
    while True:
        path = directory / f"{journal_clock.instant():020d}-{secrets.token_hex(4)}{LIVE}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        fd = kernel.open(str(path), flags, mode=0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if path.exists():  # nobody took it for abandoned before it was locked
            return path, fd
        kernel.close(fd)


def claim(path: Path) -> int | None:
    """Lock a segment whose owner is gone; ``None`` if it lives or somebody else took it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    if not path.exists():
        os.close(fd)
        return None
    return fd


def _sync_directory(directory: Path, kernel: Kernel) -> None:
    fd = kernel.open(str(directory), os.O_RDONLY | os.O_DIRECTORY)
    try:
        kernel.fsync(fd)
    finally:
        kernel.close(fd)
