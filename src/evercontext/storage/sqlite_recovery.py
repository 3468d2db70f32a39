"""Put a damaged database aside at opening, and save its readable rows."""

from __future__ import annotations

import itertools
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evercontext.storage.row_checksum import CHECKED, row_is_whole
from evercontext.storage.sqlite_connection import as_dict, connect

_HEADER = b"SQLite format 3\x00"
_LARGEST = 1 << 40
"""A length in a damaged header that is no length: nothing is padded to it."""
_ROW = "\x01row"
_MOST_MISSING = 2_000
"""Numbers without a readable row after which nothing more is expected: a page has fewer."""
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
    with (
        tempfile.TemporaryDirectory(dir=damaged.parent, prefix=".salvage-") as scratch,
        closing(sqlite3.connect(_readable_copy(damaged, Path(scratch)))) as source,
    ):
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


def _readable_copy(damaged: Path, scratch: Path) -> Path:
    """Copy the database and repair what keeps SQLite from reading the rest; it stays as it is."""
    copy = scratch / damaged.name
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(damaged.with_name(damaged.name + suffix), f"{copy}{suffix}")
    with copy.open("r+b") as file:
        header = file.read(100)
        file.seek(0)
        file.write(_HEADER)
        # A file that is shorter than its header says is refused whole.
        page_size, pages = int.from_bytes(header[16:18]), int.from_bytes(header[28:32])
        length = (65_536 if page_size == 1 else page_size) * pages
        if copy.stat().st_size < length < _LARGEST:
            file.truncate(length)
    return copy


def _readable(source: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows from both ends, and those between by their numbers.

    A broken page stops a scan from either side; a row that is looked for by its number is read
    through other pages.
    """
    numbered = f'SELECT rowid AS "{_ROW}", * FROM {_quoted(table)}'  # noqa: S608 the name comes from our own schema
    ends, broken = dict[str, int](), False
    for order in ("ASC", "DESC"):
        try:
            for row in source.execute(f"{numbered} ORDER BY rowid {order}"):
                ends[order] = row.pop(_ROW)
                if row_is_whole(table, row):
                    yield row
        except (sqlite3.Error, UnicodeDecodeError):
            broken = True
        if not broken:
            return
    yield from _probed(source, table, f"{numbered} WHERE rowid = ?", ends)


def _probed(
    source: sqlite3.Connection, table: str, statement: str, ends: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield rows between the ends of what scans could read, until too many are missing."""
    try:
        source.execute(f"{_select(table)} LIMIT 0")
    except (sqlite3.Error, UnicodeDecodeError):
        # Nobody can ask for its rows by any number: its definition is lost.
        return
    missing = 0
    for number in itertools.count(ends.get("ASC", 0) + 1):
        if missing > _MOST_MISSING or number >= ends.get("DESC", math.inf):
            return
        missing += 1
        with suppress(sqlite3.Error, UnicodeDecodeError):
            for row in source.execute(statement, (number,)):
                missing = 0
                del row[_ROW]
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
