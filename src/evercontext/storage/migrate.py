"""Apply numbered migrations, each once, in order, in one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from evercontext.errors import StoreProblem, StoreTooNew
from evercontext.storage.sqlite_connection import copy_database, meaning_of

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")

_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at DATETIME DEFAULT CURRENT_TIMESTAMP
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """From which version to which, and where the copy from before is."""

    before: int
    after: int
    backup: Path | None = None


def split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; a ``;`` inside a trigger or a string does not end one."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
    if any(line.strip() and not line.lstrip().startswith("--") for line in pending.splitlines()):
        raise StoreProblem("a migration ends in the middle of a statement")


def load_migrations(package: str, folder: str) -> tuple[Migration, ...]:
    """Read the ``NNNN_name.sql`` files of a package's folder; numbers run from 1 without a gap."""
    migrations = []
    for entry in files(package).joinpath(folder).iterdir():
        if match := _FILE_NAME.fullmatch(entry.name):
            statements = tuple(split_statements(entry.read_text(encoding="utf-8")))
            migrations.append(Migration(int(match[1]), match[2], statements))
    migrations.sort(key=lambda migration: migration.version)
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise StoreProblem(f"the migrations of {package} are not numbered 1, 2, 3, …")
    return tuple(migrations)


@cache
def home_migrations() -> tuple[Migration, ...]:
    """Return the schema of the user's database."""
    return load_migrations("evercontext.storage", "migrations/sqlite")


@cache
def postgres_migrations() -> tuple[Migration, ...]:
    """Return the same schema as PostgreSQL says it."""
    return load_migrations("evercontext.storage", "migrations/postgres")


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the newest migration this database has seen, 0 for a fresh one."""
    ledger = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
    if connection.execute(ledger).fetchone() is None:
        return 0
    newest = connection.execute("SELECT max(version) AS version FROM schema_migrations")
    return int(newest.fetchone()["version"] or 0)


def refuse_newer(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """Return the schema's version; raise ``StoreTooNew`` if this program does not know it."""
    version, known = schema_version(connection), len(migrations)
    if version > known:
        raise StoreTooNew(
            f"the database has schema {version}, this version knows {known}",
            fix="Update evercontext, or point EC_HOME at another folder",
        )
    return version


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[Migration], path: Path | None = None
) -> MigrationReport:
    """Bring the schema up to date; data that exists is copied next to ``path`` before."""
    before = refuse_newer(connection, migrations)
    if before == len(migrations):
        return MigrationReport(before, before)
    backup = None
    if path is not None and before > 0:
        backup = path.with_name(f"{path.name}.backup-v{before}")
        copy_database(connection, backup)
    for migration in migrations[before:]:
        _apply(connection, migration, backup)
    return MigrationReport(before, len(migrations), backup)


def _apply(connection: sqlite3.Connection, migration: Migration, backup: Path | None) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_LEDGER)
        if schema_version(connection) < migration.version:
            for statement in migration.statements:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migrations (version, name) VALUES (?, ?)",
                (migration.version, migration.name),
            )
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        # SQLite itself rolls back on some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        copy = f"; the copy from before is {backup}" if backup else ""
        raise type(meaning_of(error))(
            f"migration {migration.version:04d}_{migration.name} failed and was rolled back "
            f"({error}){copy}"
        ) from error
