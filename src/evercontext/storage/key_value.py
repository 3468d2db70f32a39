"""Read and write the table of keys and values that small parts share (table ``kept``)."""

from __future__ import annotations

from evercontext.storage.store import Queries, Row


def owner_of_keys(queries: Queries) -> str:
    """Return the prefix of the keys of the login that statements run under; mostly none."""
    return str(getattr(queries, "key_owner", ""))


async def get_value(queries: Queries, key: str) -> str | None:
    """Return the value of a key, or None."""
    row = await queries.fetch_one("SELECT value FROM kept WHERE key = ?", (_own(queries, key),))
    return None if row is None else str(row["value"])


async def put_value(queries: Queries, key: str, value: str) -> None:
    """Set the value of a key, whatever it was before."""
    await queries.execute(
        "INSERT INTO kept (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_own(queries, key), value),
    )


async def delete_value(queries: Queries, key: str) -> bool:
    """Remove a key; return whether it was there. Of two calls at once only one returns True."""
    return await queries.execute("DELETE FROM kept WHERE key = ?", (_own(queries, key),)) > 0


async def values_below(queries: Queries, prefix: str) -> list[Row]:
    """Return ``key`` and ``value`` of every key with this prefix, the last key first."""
    below = _own(queries, prefix)
    rows = await queries.fetch_all(
        "SELECT key, value FROM kept WHERE substr(key, 1, ?) = ? ORDER BY key DESC",
        (len(below), below),
    )
    owner = owner_of_keys(queries)
    return [{**row, "key": str(row["key"]).removeprefix(owner)} for row in rows]


def _own(queries: Queries, key: str) -> str:
    return owner_of_keys(queries) + key
