"""Notice that the files of an open database were removed or replaced."""

from __future__ import annotations

from pathlib import Path

from evercontext.files.open_file import identity_of

_BESIDE = ("-wal", "-shm")


class DatabaseFiles:
    """The database and its log, as they were when it was opened.

    SQLite goes on in files that lost their names: it would acknowledge commits that nobody finds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._main = identity_of(path)
        named = ((f"{path}{suffix}", identity_of(f"{path}{suffix}")) for suffix in _BESIDE)
        # Without WAL there are none; they exist as long as somebody has the database open.
        self._beside = {name: identity for name, identity in named if identity}

    def main_in_place(self) -> bool:
        """True if the database itself is still there."""
        return identity_of(self._path) == self._main

    def in_place(self) -> bool:
        """True if every file is still there."""
        return self.main_in_place() and all(
            identity_of(name) == identity for name, identity in self._beside.items()
        )
