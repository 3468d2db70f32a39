"""Copy a SQLite database while others may use it, and leave nothing beside the original."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from evercontext.errors import StoreBusy, StoreProblem
from evercontext.storage.sqlite_connection import BUSY_SECONDS, create_private, translated

_LOG, _SHARED = "-wal", "-shm"


def stamp_of(database: Path) -> str:
    """What is another text after every commit to a database; empty where there is none."""
    stamps = []
    for file in (database, _beside(database, _LOG)):
        try:
            seen = os.lstat(file)
        except OSError:
            continue
        stamps.append(f"{seen.st_ino} {seen.st_size} {seen.st_mtime_ns}")
    return ", ".join(stamps)


def replicate(source: Path, target: Path) -> None:
    """Make ``target`` hold what ``source`` holds, whole or not at all; readers of both go on."""
    with (
        translated(),
        tempfile.TemporaryDirectory(dir=target.parent) as scratch,
        closing(_reading(source, Path(scratch))) as old,
    ):
        create_private(target)
        with closing(sqlite3.connect(target, timeout=BUSY_SECONDS)) as new:
            old.backup(new)


def _reading(source: Path, scratch: Path) -> sqlite3.Connection:
    if not source.is_file():
        raise StoreProblem("there is no database to copy", fix="Nothing was changed")
    log = _beside(source, _LOG)
    before = stamp_of(source)
    written = log.exists() and log.stat().st_size > 0
    if written and _beside(source, _SHARED).exists():
        return _opened(source, "mode=ro")
    # Nobody writes, or whoever did was killed: SQLite would put files beside it to read it.
    for file in (source, log) if written else (source,):
        shutil.copyfile(file, scratch / file.name)
    if stamp_of(source) != before:
        raise StoreBusy("another process began to write the database", fix="Try again")
    return _opened(scratch / source.name, "mode=rw")


def _opened(file: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True, timeout=BUSY_SECONDS)


def _beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)
