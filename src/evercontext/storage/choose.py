"""Which database: the server that is named, otherwise the file of one person."""

from __future__ import annotations

from pathlib import Path

from evercontext.errors import ConfigError
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import Store

_SCHEMES = ("postgresql://", "postgres://")


async def open_store(path: Path, url: str | None = None) -> Store:
    """Open the database at ``url``, or the file ``path`` where none is named."""
    if not url:
        return await SqliteStore.open(path)
    if not url.startswith(_SCHEMES):
        raise ConfigError(
            "EC_DATABASE_URL is no address of a PostgreSQL database",
            fix="Write it like postgresql://user:password@host/name",
        )
    try:
        from evercontext.storage.postgres import PostgresStore
    except ImportError:
        raise ConfigError(
            "EC_DATABASE_URL needs the PostgreSQL driver",
            fix="Run: pip install 'evercontext[postgres]'",
        ) from None
    return await PostgresStore.open(url)
