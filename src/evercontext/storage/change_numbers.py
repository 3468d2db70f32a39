"""Numbers of changes: which of them a reader has seen for certain.

In a file writers take turns, and the newest number is the last one that was given. On a server they
do not: a change has the number of its transaction, and a reader has seen for certain only what is
older than every transaction that is still open. It reads the rest again, which does no harm.
"""

from __future__ import annotations

from evercontext.storage.store import READ_SECONDS, Store

_NEWEST = "SELECT coalesce(max(change), 0) AS change FROM memories"
_SETTLED = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 AS change"


async def read_settled_change(store: Store, seconds: float = READ_SECONDS) -> int:
    """Return the number up to which no further change can appear."""
    sql = _SETTLED if store.report.shared else _NEWEST
    row = await store.fetch_one(sql, seconds=seconds)
    return int(row["change"]) if row else 0
