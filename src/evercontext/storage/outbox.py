"""What waits on this machine while the database server is away: one small file, durable, private.

Entries have numbers that are never used twice. The server keeps the number it has taken last, in
the transaction that takes it; what a crash leaves here is then known there, and not taken again.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from evercontext.storage.connect import connect, create_private, translated

_TABLES = (
    "CREATE TABLE IF NOT EXISTS box (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL, project TEXT NOT NULL, user_id TEXT NOT NULL, body TEXT NOT NULL,"
    " sent INTEGER NOT NULL, UNIQUE (project, user_id, id))",
)
_NAME = "INSERT INTO box (one, name) VALUES (1, ?) ON CONFLICT DO NOTHING"


class Outbox:
    """The entries of one database address; the file is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def count(self) -> int:
        """How many wait."""
        if not self._path.exists():
            return 0
        with self.held() as held:
            return int(held.execute("SELECT count(*) AS n FROM waiting").fetchone()["n"])

    @contextmanager
    def held(self) -> Iterator[sqlite3.Connection]:
        """Hold the file alone: what is done meanwhile is done as a whole, or not at all."""
        with translated():
            self._make()
            with closing(connect(str(self._path))) as link:
                link.execute("BEGIN IMMEDIATE")
                try:
                    for table in _TABLES:
                        link.execute(table)
                    link.execute(_NAME, (secrets.token_hex(16),))
                    yield link
                    link.execute("COMMIT")
                except BaseException:
                    if link.in_transaction:
                        link.execute("ROLLBACK")
                    raise

    def _make(self) -> None:
        if self._path.exists():
            return
        create_private(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def name_of(held: sqlite3.Connection) -> str:
    """The name under which the server knows this file; another file has another one."""
    found: dict[str, Any] = held.execute("SELECT name FROM box").fetchone()
    return str(found["name"])
