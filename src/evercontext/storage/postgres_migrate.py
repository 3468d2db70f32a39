"""Apply the migrations on PostgreSQL, one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from evercontext.errors import StoreProblem, StoreTooNew
from evercontext.storage.migrate import Migration
from evercontext.storage.postgres_values import meaning_of, translated

_MIGRATING = 0x45434F4D
"""The number of the lock under which one process changes the schema."""
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT DEFAULT to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD HH24:MI:SS')
)
"""
Link = psycopg.AsyncConnection[dict[str, Any]]


async def migrate(
    link: Link, migrations: Sequence[Migration], busy_seconds: float
) -> tuple[int, int]:
    """Bring the schema up to date; return its version before and after."""
    with translated():
        before = await read_version(link)
        _refuse_newer(before, len(migrations))
        wait = f"{int(busy_seconds * 1000)}"
        await link.execute("SELECT set_config('lock_timeout', $1, false)", [wait])
        for migration in migrations[before:]:
            await _apply(link, migration)
    return before, len(migrations)


async def read_version(link: Link) -> int:
    """Return the newest migration that this database has seen, 0 for an empty one."""
    there = await link.execute("SELECT to_regclass('schema_migrations') IS NOT NULL AS there")
    row = await there.fetchone()
    if not row or not row["there"]:
        return 0
    newest = await link.execute("SELECT max(version) AS version FROM schema_migrations")
    row = await newest.fetchone()
    return int((row or {}).get("version") or 0)


async def check_version(link: Link, known: int) -> int:
    """Return the version of a schema that somebody else keeps up to date."""
    with translated():
        version = await read_version(link)
    _refuse_newer(version, known)
    if version < known:
        raise StoreProblem(
            f"the database has schema {version}, this version needs {known}",
            fix="Let the owner of the database run: evercontext db migrate",
        )
    return version


def _refuse_newer(version: int, known: int) -> None:
    if version > known:
        raise StoreTooNew(
            f"the database has schema {version}, this version knows {known}",
            fix="Update evercontext, or point EC_DATABASE_URL at another database",
        )


async def _apply(link: Link, migration: Migration) -> None:
    """Do all of it or nothing: what defines tables is undone here like everything else."""
    try:
        async with link.transaction():
            await link.execute("SELECT pg_advisory_xact_lock($1)", [_MIGRATING])
            await link.execute(_LEDGER)
            # Another process may have done it while this one waited.
            if await read_version(link) >= migration.version:
                return
            for statement in migration.statements:
                await link.execute(statement)
            await link.execute(
                "INSERT INTO schema_migrations (version, name) VALUES ($1, $2)",
                [migration.version, migration.name],
            )
    except psycopg.Error as error:
        raise type(meaning_of(error))(
            f"migration {migration.version:04d}_{migration.name} failed and was rolled back "
            f"({' '.join(str(error).split())})"
        ) from error
