"""Check rows by checksum: the database does not notice damage inside a text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

CHECKED: Mapping[str, tuple[str, ...]] = {
    "messages": ("session_id", "role", "content", "tool_calls", "tool_results"),
    "memories": ("id", "source_type", "content", "untrusted"),
    "waiting": ("kind", "id", "session", "body"),
}
"""The tables that carry a ``checksum`` column, and what it covers."""


def checksum(values: Iterable[Any]) -> str:
    """Return the checksum of a row's values, in the order ``CHECKED`` names them."""
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        encoded = b"" if value is None else str(value).encode("utf-8", "surrogatepass")
        # The length keeps ("ab", "c") and ("a", "bc") apart, the sign NULL and "".
        digest.update(f"{-1 if value is None else len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def row_is_whole(table: str, row: Mapping[str, Any]) -> bool:
    """True unless the row carries a checksum that its values do not match."""
    columns = CHECKED.get(table)
    if columns is None or row.get("checksum") is None:
        return True
    return checksum(row.get(column) for column in columns) == str(row["checksum"])
