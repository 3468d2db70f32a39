"""Open the database: the server that is named, otherwise the SQLite file of one person."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path

from evercontext.errors import ConfigError, missing_library
from evercontext.settings.installation import install_hint
from evercontext.storage.sqlite import SqliteStore
from evercontext.storage.store import OpenReport, Store

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = ("password", "sslpassword")


async def open_store(path: Path, url: str | None = None, login: str | None = None) -> Store:
    """Open the database at ``url``, or the file ``path`` where none is named."""
    if not url:
        return await SqliteStore.open(path)
    check_address(url)
    from evercontext.storage.postgres import PostgresStore

    return await PostgresStore.open(url, outbox=outbox_path(path, url), login=login)


async def open_or_wait(path: Path, url: str | None = None, login: str | None = None) -> Store:
    """Open it; a server that is away gives a store that says so until it is back."""
    if not url:
        return await SqliteStore.open(path)
    check_address(url)
    from evercontext.storage.offline_store import OfflineStore
    from evercontext.storage.outbox_file import Outbox
    from evercontext.storage.postgres import PostgresStore, place_of

    box = outbox_path(path, url)
    warning = await asyncio.to_thread(Outbox(box).repair)
    store = OfflineStore(
        lambda attempts: PostgresStore.open(url, outbox=box, attempts=attempts, login=login),
        OpenReport(
            place_of(url), 0, shared=True, outbox=box, warnings=(warning,) if warning else ()
        ),
    )
    await store.begin()
    return store


def outbox_path(path: Path, url: str) -> Path:
    """Where things wait for the server: a file per address, whatever its password."""
    check_address(url)
    from psycopg.conninfo import conninfo_to_dict

    from evercontext.storage.postgres_values import translated

    with translated():
        parts = conninfo_to_dict(url)
    plain = {name: str(value) for name, value in parts.items() if name not in _SECRET}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    return path.parent / "outbox" / f"{digest[:24]}.db"


def check_address(url: str) -> None:
    """Refuse what is no address of a server, or cannot be used for want of a driver."""
    if not url.startswith(_SCHEMES):
        raise ConfigError(
            "EC_DATABASE_URL is no address of a PostgreSQL database",
            fix="Write it like postgresql://user:password@host/name",
        )
    try:
        import psycopg as psycopg
    except ModuleNotFoundError:
        fix = install_hint("postgres")
        raise ConfigError("EC_DATABASE_URL needs the PostgreSQL driver", fix=fix) from None
    except ImportError as error:
        # psycopg without the extra's binary looks for the system's library.
        reason = missing_library(error) or str(error).strip().splitlines()[-1]
        raise ConfigError(
            f"the PostgreSQL driver cannot be loaded: {getattr(reason, 'message', reason)}",
            fix=install_hint("postgres"),
        ) from error
