"""See what a database is and holds, without changing it: no migration, no repair."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evercontext.storage.database_copy import TABLES
from evercontext.storage.migrate import home_migrations, postgres_migrations, schema_version


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """One database as it is now."""

    location: str
    kind: str
    version: int
    """The schema it has; 0 if it has none yet."""
    known: int
    """The schema that this program knows."""
    memory_search: str
    """Where the memories that bear on a question are chosen."""
    rows: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def sqlite_status(path: Path) -> DatabaseStatus:
    """Look into a file; one that is not there has no schema."""
    import sqlite3

    from evercontext.storage.sqlite_connection import as_dict, translated

    version, rows = 0, {}
    if path.exists():
        with (
            translated(),
            closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as link,
        ):
            link.row_factory = as_dict
            version = schema_version(link)
            names = {
                row["name"]
                for row in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            for table in TABLES:
                if table.name in names:
                    sql = f"SELECT count(*) AS n FROM {table.name}"  # noqa: S608 - a name of ours
                    rows[table.name] = int(link.execute(sql).fetchone()["n"])
    known = len(home_migrations())
    return DatabaseStatus(str(path), "SQLite", version, known, "in each process", rows)


async def postgres_status(url: str) -> DatabaseStatus:
    """Ask a server."""
    from evercontext.storage.postgres import connect, place_of
    from evercontext.storage.postgres_memory_search import describe
    from evercontext.storage.postgres_migrate import read_version
    from evercontext.storage.postgres_values import translated

    link = await connect(url)
    try:
        with translated():
            version, rows = await read_version(link), {}
            for table in TABLES if version else ():
                sql = f"SELECT count(*) AS n FROM {table.name}"  # noqa: S608 - a name of ours
                row = await (await link.execute(sql)).fetchone()
                rows[table.name] = int(row["n"]) if row else 0
            search = await describe(link)
    finally:
        await link.close()
    known = len(postgres_migrations())
    return DatabaseStatus(place_of(url), "PostgreSQL", version, known, search, rows)
