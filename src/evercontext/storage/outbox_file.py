"""Keep what waits for the database server in one durable, private file.

Entries have numbers that are never used twice. The server keeps the number it has taken last, in
the transaction that takes it; what a crash leaves here is then known there, and not taken again.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from evercontext.storage.sqlite_connection import connect, create_private, translated
from evercontext.storage.sqlite_recovery import find_damage, put_aside, salvage

_TABLES = (
    "CREATE TABLE IF NOT EXISTS box (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL, project TEXT NOT NULL, user_id TEXT NOT NULL, body TEXT NOT NULL,"
    " sent INTEGER NOT NULL, UNIQUE (project, user_id, id))",
    "CREATE TABLE IF NOT EXISTS refused (number INTEGER PRIMARY KEY, kind TEXT NOT NULL,"
    " body TEXT NOT NULL, reason TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS copies (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
_ADDED = {
    "kind": "ALTER TABLE waiting ADD COLUMN kind TEXT NOT NULL DEFAULT 'memory'",
    "session": "ALTER TABLE waiting ADD COLUMN session TEXT NOT NULL DEFAULT ''",
    "checksum": "ALTER TABLE waiting ADD COLUMN checksum TEXT",
}
"""Columns that files from before conversations waited do not have."""
_PATIENCE = 60.0
"""Seconds to wait for the file: everybody holds it for a moment only, but many may want it."""
_NAME = "INSERT INTO box (one, name) VALUES (1, ?) ON CONFLICT DO NOTHING"
_COPY = (
    "INSERT INTO copies (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class Outbox:
    """The entries of one database address; the file is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def count(self, table: str = "waiting") -> int:
        """How many wait, or were ``refused`` for good."""
        if not self._path.exists():
            return 0
        counting = {
            "waiting": "SELECT count(*) AS n FROM waiting",
            "refused": "SELECT count(*) AS n FROM refused",
        }
        with self.held() as held:
            return int(held.execute(counting[table]).fetchone()["n"])

    def copy(self, key: str, value: str) -> None:
        """Keep a copy of something the server said, for the time when it cannot be asked."""
        if self.copied(key) != value:
            with self.held() as held:
                held.execute(_COPY, (key, value))

    def copied(self, key: str) -> str | None:
        """The copy, or ``None`` where the server was never asked from here."""
        if not self._path.exists():
            return None
        with self.held() as held:
            row = held.execute("SELECT value FROM copies WHERE key = ?", (key,)).fetchone()
            return str(row["value"]) if row else None

    def repair(self) -> str | None:
        """Put a damaged file aside and save what is whole in it; return what to tell the user."""
        if not self._path.exists() or not (damage := find_damage(self._path)):
            return None
        with self.delivering() as mine:
            if not mine:
                return None
            aside = put_aside(self._path)
            with self.held():
                pass
            with closing(connect(str(self._path))) as fresh:
                # The old name goes on: the server knows by it what it has taken.
                fresh.execute("DELETE FROM box")
                salvage(aside, fresh)
        waiting = self.count()
        return (
            f"what waits for the database was damaged ({damage}) and is now at {aside};"
            f" {waiting} entries were saved"
        )

    @contextmanager
    def held(self) -> Iterator[sqlite3.Connection]:
        """Hold the file alone: what is done meanwhile is done as a whole, or not at all."""
        with translated():
            self._make()
            with closing(connect(str(self._path), busy_seconds=_PATIENCE)) as link:
                link.execute("BEGIN IMMEDIATE")
                try:
                    _prepare(link)
                    yield link
                    link.execute("COMMIT")
                except BaseException:
                    if link.in_transaction:
                        link.execute("ROLLBACK")
                    raise

    @contextmanager
    def delivering(self) -> Iterator[bool]:
        """Be the one that delivers, or hear ``False``; whatever ends this process lets it go.

        The file itself stays free meanwhile: a server that answers slowly keeps nobody from
        leaving something here.
        """
        with translated():
            self._make()
            lock = os.open(
                self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)

    def _make(self) -> None:
        if self._path.exists():
            return
        create_private(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _prepare(link: sqlite3.Connection) -> None:
    for table in _TABLES:
        link.execute(table)
    known = {row["name"] for row in link.execute("PRAGMA table_info(waiting)")}
    for column, statement in _ADDED.items():
        if column not in known:
            link.execute(statement)
    link.execute(_NAME, (secrets.token_hex(16),))


def name_of(held: sqlite3.Connection) -> str:
    """The name under which the server knows this file; another file has another one."""
    row: dict[str, Any] = held.execute("SELECT name FROM box").fetchone()
    return str(row["name"])
