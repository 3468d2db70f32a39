"""Queue paths to index: durable, each once, taken under a lease.

A path that changes a thousand times is one row. Past a limit the rows give way to a single one for
the whole tree, so that no storm of events grows without bound. A worker that dies loses its lease,
and another one takes the rows.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evercontext.storage.store import Store

WHOLE_TREE = ""
MOST_PATHS = 10_000
LEASE_SECONDS = 120.0
MOST_ATTEMPTS = 5
_ADD_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Leased:
    """Paths that one worker may index until its lease ends."""

    paths: tuple[str, ...]
    owner: str

    def __bool__(self) -> bool:
        return bool(self.paths)


class JobQueue:
    """The waiting paths of one index."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, paths: Iterable[str]) -> None:
        """Let paths wait; one that waits already keeps its place."""
        names = list(dict.fromkeys(paths))
        for start in range(0, len(names), _ADD_AT_ONCE):
            if await self._is_full():
                return
            await self._store.execute_many(
                # A row under lease is indexed once more afterwards: it changed meanwhile.
                "INSERT INTO jobs (path, added) VALUES (?, ?) ON CONFLICT (path) DO UPDATE SET "
                "leased_by = NULL, leased_until = 0, attempts = 0",
                [(path, time.time()) for path in names[start : start + _ADD_AT_ONCE]],
            )

    async def _is_full(self) -> bool:
        row = await self._store.fetch_one("SELECT count(*) AS n FROM jobs")
        if row is None or row["n"] < MOST_PATHS:
            return False
        async with self._store.transaction() as t:
            await t.execute("DELETE FROM jobs")
            await t.execute(
                "INSERT INTO jobs (path, added) VALUES (?, ?)", (WHOLE_TREE, time.time())
            )
        return True

    async def take(self, limit: int = 256, seconds: float = LEASE_SECONDS) -> Leased:
        """Lease the longest-waiting paths that nobody works on."""
        owner, now = uuid.uuid4().hex, time.time()
        async with self._store.transaction() as t:
            rows = await t.fetch_all(
                "UPDATE jobs SET leased_by = ?, leased_until = ?, attempts = attempts + 1 "
                "WHERE path IN (SELECT path FROM jobs WHERE leased_until < ? "
                "ORDER BY added, path LIMIT ?) RETURNING path",
                (owner, now + seconds, now, limit),
            )
        return Leased(tuple(sorted(row["path"] for row in rows)), owner)

    async def free(self) -> None:
        """Take every lease away: for whoever knows that no other worker is alive."""
        await self._store.execute(
            "UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by IS NOT NULL"
        )

    async def finish(self, leased: Leased) -> None:
        """Forget paths that were indexed, unless they were added again meanwhile."""
        await self._store.execute("DELETE FROM jobs WHERE leased_by = ?", (leased.owner,))

    async def give_back(self, leased: Leased) -> None:
        """Let the paths wait again; one that failed too often is given up to the next scan."""
        async with self._store.transaction() as t:
            await t.execute(
                "DELETE FROM jobs WHERE leased_by = ? AND attempts >= ?",
                (leased.owner, MOST_ATTEMPTS),
            )
            await t.execute(
                "UPDATE jobs SET leased_by = NULL, leased_until = 0 WHERE leased_by = ?",
                (leased.owner,),
            )

    async def waiting(self) -> Sequence[str]:
        """Return every waiting path, leased ones included."""
        rows = await self._store.fetch_all("SELECT path FROM jobs ORDER BY added, path")
        return [row["path"] for row in rows]
