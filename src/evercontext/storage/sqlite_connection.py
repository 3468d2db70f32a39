"""Open SQLite connections, and translate their errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from evercontext.errors import (
    DiskFull,
    EverContextError,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreProblem,
    StoreTimeout,
)

UNHOLDABLE = "Give text as valid UTF-8, and numbers of at most 64 bits"
BUSY_SECONDS = 10.0
"""How long a statement waits for another process before it gives up."""
WAITING = 5.0
"""How long a query may wait, for the disk or the processor, besides its work."""
_STEPS_BETWEEN_CHECKS = 10_000

_MEANING: dict[int, tuple[type[EverContextError], str, str | None]] = {
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "another process holds the database",
        "Close it or try again",
    ),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "the database is locked", "Try again"),
    sqlite3.SQLITE_FULL: (DiskFull, "no space left for the database", "Free some space"),
    sqlite3.SQLITE_CORRUPT: (
        StoreCorrupt,
        "the database is damaged",
        "Restart: it is repaired when it is opened",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreCorrupt,
        "the file is not a database",
        "Restart: it is repaired when it is opened",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreProblem,
        "the database cannot be opened",
        "Check that its folder exists and is yours (EC_HOME)",
    ),
    sqlite3.SQLITE_READONLY: (
        StoreProblem,
        "the database cannot be written",
        "Check the permissions of its folder (EC_HOME)",
    ),
    sqlite3.SQLITE_CONSTRAINT: (StoreConflict, "the row contradicts another one", None),
}


def meaning_of(error: sqlite3.Error) -> EverContextError:
    """Return the error of our tree that says what SQLite meant."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind, message, fix = _MEANING.get(primary, (StoreProblem, "the database refused", None))
    return kind(f"{message} ({error})", fix=fix)


def took_too_long(seconds: float) -> StoreTimeout:
    """Return the error for a query that was stopped at its limit."""
    limit = f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
    return StoreTimeout(f"the query was stopped: it took longer than {limit}", fix="Narrow it")


@contextmanager
def translated() -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise meaning_of(error) from error
    except (ValueError, OverflowError) as error:
        # A NUL in the SQL, a lone surrogate or an integer over 64 bits in a value.
        message = f"the database cannot hold this value ({error})"
        raise StoreProblem(message, fix=UNHOLDABLE) from error
    except OSError as error:
        raise _problem_of(error) from error


def _problem_of(error: OSError) -> EverContextError:
    if error.errno == errno.ENOSPC:
        return DiskFull("no space left for the database", fix="Free some space")
    return StoreProblem(
        f"the database cannot be opened ({error})",
        fix="Check that its folder exists and is yours (EC_HOME)",
    )


def as_dict(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> dict[str, object]:
    """Build one row; a mapping, because every database can return one."""
    names = (column[0] for column in cursor.description)
    return dict(zip(names, values, strict=True))


def connect(
    location: str,
    *,
    durable: bool = True,
    read_only: bool = False,
    busy_seconds: float = BUSY_SECONDS,
) -> sqlite3.Connection:
    """Open one connection; transactions are ours to begin and end."""
    connection = sqlite3.connect(
        location, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = as_dict
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        # NORMAL may lose the last commits in a power cut: enough for what can be rebuilt.
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        # What is forgotten is overwritten, not only unlinked.
        connection.execute("PRAGMA secure_delete = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def wipe_deleted(connection: sqlite3.Connection) -> None:
    """Take what was deleted out of the search index and out of the log beside the file."""
    connection.execute("INSERT INTO message_words (message_words) VALUES ('optimize')")
    # A reader that is still busy keeps the log; the next call, or closing, empties it.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def create_private(path: Path) -> None:
    """Make sure the file exists and only its owner can read it: it holds conversations."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        # A dangling link is not followed to create something elsewhere: this fails then.
        descriptor = os.open(path, flags)
    os.close(descriptor)


def copy_database(source: sqlite3.Connection, target: Path) -> None:
    """Copy a live database; the copy appears under its name only when it is whole."""
    unfinished = target.with_name(target.name + ".tmp")
    unfinished.unlink(missing_ok=True)
    create_private(unfinished)
    with closing(sqlite3.connect(unfinished)) as copy:
        source.backup(copy)
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(target)


@contextmanager
def stopped_after(link: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupt the statements inside once they have worked for too long.

    On a busy machine, or one with a slow disk, a small query waits, and that is not its fault: the
    processor's time is what counts, and waiting only when it comes to seconds.
    """
    done, deadline = time.thread_time() + seconds, time.monotonic() + seconds + WAITING

    def is_over() -> bool:
        return time.thread_time() > done or time.monotonic() > deadline

    link.set_progress_handler(is_over, _STEPS_BETWEEN_CHECKS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise took_too_long(seconds) from error
    finally:
        link.set_progress_handler(None, 0)
