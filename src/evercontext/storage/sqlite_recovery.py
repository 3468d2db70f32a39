"""Put a damaged database aside at opening, and save its readable rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evercontext.storage.row_checksum import CHECKED, row_is_whole
from evercontext.storage.sqlite_connection import as_dict, connect

_HEADER = b"SQLite format 3\x00"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def find_damage(path: Path) -> str | None:
    """Return what is wrong with the database file, or ``None``; an empty file is a fresh one."""
    with path.open("rb") as file:
        header = file.read(len(_HEADER))
    if not header:
        return None
    if header != _HEADER:
        return "its header is not one of a database"
    try:
        with closing(connect(str(path), read_only=True)) as connection:
            connection.text_factory = _lenient
            return _failed_check(connection) or _damaged_row(connection)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            return str(error)
        raise
    except UnicodeDecodeError:
        # SQLite quotes the damaged schema in its message, and Python cannot read that.
        return "its schema is damaged"


def _failed_check(connection: sqlite3.Connection) -> str | None:
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()
    answer = str(next(iter(verdict.values())))
    return None if answer == "ok" else " ".join(answer.split()).encode("ascii", "replace").decode()


def _damaged_row(connection: sqlite3.Connection) -> str | None:
    present = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}
    for table in CHECKED.keys() & present:
        for row in connection.execute(_select(table)):
            if not row_is_whole(table, row):
                return f"a row of {table} does not match its checksum"
    return None


def put_aside(path: Path) -> Path:
    """Move a damaged database and its log out of the way and return the new name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return target


def salvage(damaged: Path, fresh: sqlite3.Connection) -> int:
    """Copy every row that is readable and whole into the fresh database; return how many."""
    saved = 0
    with closing(sqlite3.connect(damaged)) as source:
        source.row_factory = as_dict
        source.text_factory = _lenient
        fresh.execute("PRAGMA foreign_keys = OFF")
        fresh.execute("BEGIN IMMEDIATE")
        for table in _tables(fresh):
            saved += sum(_insert(fresh, table, row) for row in _readable(source, table))
        saved -= _drop_orphans(fresh)
        fresh.execute("COMMIT")
        fresh.execute("PRAGMA foreign_keys = ON")
    return saved


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    # A search index is filled again from the rows that are copied.
    indexes = [row["name"] for row in rows if (row["sql"] or "").startswith("CREATE VIRTUAL")]
    skipped = ("sqlite_", "schema_migrations", *indexes)
    return [row["name"] for row in rows if not row["name"].startswith(skipped)]


def _readable(source: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield rows from both ends: a broken page stops a scan, and stops the other one too."""
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error, UnicodeDecodeError):
            for row in source.execute(f"{_select(table)} ORDER BY rowid {order}"):
                if row_is_whole(table, row):
                    yield row


def _lenient(text: bytes) -> str:
    """Decode without failing; bytes that are no UTF-8 become what no database stores again."""
    return text.decode("utf-8", "surrogateescape")


def _drop_orphans(fresh: sqlite3.Connection) -> int:
    orphans = fresh.execute("PRAGMA foreign_key_check").fetchall()
    for orphan in orphans:
        table = _quoted(orphan["table"])
        fresh.execute(f"DELETE FROM {table} WHERE rowid = ?", (orphan["rowid"],))  # noqa: S608 the name comes from our own schema
    return len(orphans)


def _insert(fresh: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    names = ", ".join(_quoted(name) for name in row)
    marks = ", ".join("?" * len(row))
    statement = f"INSERT OR IGNORE INTO {_quoted(table)} ({names}) VALUES ({marks})"  # noqa: S608 names come from our own schema
    try:
        return fresh.execute(statement, list(row.values())).rowcount
    except (sqlite3.Error, ValueError):
        # A row of another shape, or nonsense that a checksum did not cover: not saved.
        return 0


def _select(table: str) -> str:
    return f"SELECT * FROM {_quoted(table)}"  # noqa: S608 the name comes from our own schema


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
