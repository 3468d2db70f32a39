"""Keep the log output of servers: last lines in memory, and a bounded file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from evercontext.events.redaction import Clean

KEPT_LINES = 200
LARGEST_FILE = 256 * 1024
"""Bytes after which a file becomes the older one, of which there is one."""


class ServerLog:
    """The stderr of one server. A disk that is full loses lines, never a call."""

    def __init__(self, server: str, folder: Path | None = None, clean: Clean = str) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._clean = clean
        self._path = log_path(folder, server) if folder else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def append(self, line: str) -> None:
        """Keep one line."""
        self.extend([line])

    def extend(self, lines: list[str]) -> None:
        """Keep some lines, in memory and in the file."""
        lines = [self._clean(line) for line in lines]
        self.lines.extend(lines)
        if self._path is None or not lines:
            return
        at = datetime.now(UTC).isoformat(timespec="seconds")
        text = "".join(f"{at} {line}\n" for line in lines[-KEPT_LINES:])
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._turn_over()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, text.encode("utf-8", "backslashreplace"))
            finally:
                os.close(descriptor)
        except OSError:
            return

    def _turn_over(self) -> None:
        assert self._path is not None
        if self._path.exists() and self._path.stat().st_size > LARGEST_FILE:
            self._path.replace(self._path.with_suffix(".old"))


def log_path(folder: Path, server: str) -> Path:
    """Where the lines of a server are kept."""
    return folder / f"{server}.log"


def read_log(folder: Path, server: str) -> list[str]:
    """Every kept line, oldest first."""
    path = log_path(folder, server)
    lines: list[str] = []
    for place in (path.with_suffix(".old"), path):
        try:
            with place.open("rb") as file:
                text = file.read(LARGEST_FILE * 2).decode("utf-8", "replace")
        except OSError:
            continue
        lines += text.split("\n")[:-1]
    return lines


Place = tuple[int, int]
"""A file and how far it was read: the older one may take its name at any time."""


def end_of_log(folder: Path, server: str) -> Place:
    """The place after the last line that is there now."""
    try:
        status = log_path(folder, server).stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_size


def read_on(folder: Path, server: str, place: Place) -> tuple[list[str], Place]:
    """The complete lines that came since, and the place after them."""
    number, offset = place
    try:
        with log_path(folder, server).open("rb") as file:
            now = os.fstat(file.fileno()).st_ino
            file.seek(offset if now == number else 0)
            data = file.read(LARGEST_FILE * 2)
            end = file.tell()
    except OSError:
        return [], place
    complete = data[: data.rfind(b"\n") + 1]
    lines = complete.decode("utf-8", "replace").split("\n")[:-1]
    return lines, (now, end - len(data) + len(complete))
