"""Hold what waits for the database server, and deliver it once and in order."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evercontext.errors import (
    DiskFull,
    StoreBusy,
    StoreClash,
    StoreGone,
    StoreProblem,
    StoreTimeout,
)
from evercontext.memory.memory_table import MemoryScope, is_visible
from evercontext.memory.outbox_delivery import Waiting, body_of, take
from evercontext.storage.key_value import get_value, put_value
from evercontext.storage.outbox_file import Outbox, name_of
from evercontext.storage.row_checksum import checksum, row_is_whole
from evercontext.storage.store import Queries, Row, Store

_BATCH = 200
_ATTEMPTS = 3
_Result = TypeVar("_Result")
_PATIENCE = 10.0
"""Seconds that one who wants to store something waits for another who delivers."""
_PUT = (
    "INSERT INTO waiting (kind, id, session, body, project, user_id, sent, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


def queue_of(store: Store) -> Queue | None:
    """Where things wait for this store; ``None`` for a file, which is never away."""
    waiting = store.report.outbox
    return Queue(waiting) if waiting else None


async def unless_clashing(write: Callable[[], Awaitable[_Result]]) -> _Result:
    """Write; where another writer came first it is done again, three times in all."""
    for attempt in range(1, _ATTEMPTS):
        try:
            return await write()
        except StoreClash:
            await asyncio.sleep(attempt * random.uniform(0.05, 0.2))  # noqa: S311 - a pause
    return await write()


class Queue:
    """Everything that waits for one server, in the order in which it happened."""

    def __init__(self, path: Path) -> None:
        self._outbox = Outbox(path)

    async def put(self, waiting: Sequence[Waiting], *, sent: bool) -> None:
        """Keep memories; when this returns they survive a crash.

        ``sent``: the server may know them already.
        """
        rows = [
            ("memory", m.id, "", body_of(m, old), m.project or "", m.user_id or "", int(sent))
            for m, old in waiting
        ]
        await asyncio.to_thread(self._put, rows)

    async def put_talk(
        self,
        kind: str,
        session: str,
        body: Mapping[str, Any],
        *,
        id: str | None = None,
        project: str = "",
        sent: bool = False,
    ) -> int:
        """Keep a session, a change of one or a message; return its number."""
        id = id or secrets.token_hex(16)
        row = (kind, id, session, json.dumps(body), project, "", int(sent))
        return await asyncio.to_thread(self._put, [row])

    def _put(self, rows: Sequence[tuple[object, ...]]) -> int:
        with self._outbox.held() as held:
            held.executemany(_PUT, [(*row, checksum(row[:4])) for row in rows])
            newest = held.execute("SELECT max(number) AS n FROM waiting").fetchone()
            return int(newest["n"] or 0)

    async def count(self) -> int:
        """How many wait."""
        return await asyncio.to_thread(self._outbox.count)

    async def name(self) -> str:
        """What the server calls this queue."""
        return await asyncio.to_thread(self._name)

    def _name(self) -> str:
        with self._outbox.held() as held:
            return name_of(held)

    async def talk(self, session: str) -> list[Row]:
        """The entries of one session, oldest first."""
        return await asyncio.to_thread(
            self._rows, "SELECT * FROM waiting WHERE session = ? ORDER BY number", session
        )

    async def sessions(self, project: str) -> list[Row]:
        """The sessions that were begun in a project while the server was away, newest first."""
        return await asyncio.to_thread(
            self._rows,
            "SELECT * FROM waiting WHERE kind = 'session' AND project = ? ORDER BY number DESC",
            project,
        )

    def _rows(self, sql: str, value: str) -> list[Row]:
        if not self._outbox.count():
            return []
        with self._outbox.held() as held:
            return list(held.execute(sql, (value,)).fetchall())

    async def drop(self, session: str) -> bool:
        """Take a whole session back, if nothing of it can be on the server."""
        return await asyncio.to_thread(self._drop, session)

    def _drop(self, session: str) -> bool:
        with self._outbox.held() as held:
            rows = held.execute("SELECT * FROM waiting WHERE session = ?", (session,)).fetchall()
            begun_here = any(row["kind"] == "session" for row in rows)
            if not begun_here or any(row["sent"] for row in rows):
                return False
            held.execute("DELETE FROM waiting WHERE session = ?", (session,))
            return True

    async def take_back_talk(self, session: str, after: int) -> int:
        """Forget what was said in a session after an entry; ``StoreGone`` if it may be known."""
        return await asyncio.to_thread(self._take_back_talk, session, after)

    def _take_back_talk(self, session: str, after: int) -> int:
        with self._outbox.held() as held:
            rows = held.execute(
                "SELECT number, sent FROM waiting"
                " WHERE session = ? AND kind = 'message' AND number > ?",
                (session, after),
            ).fetchall()
            if any(row["sent"] for row in rows):
                raise StoreGone("some of it may be on the server, which does not answer")
            held.executemany(
                "DELETE FROM waiting WHERE number = ?", [(row["number"],) for row in rows]
            )
            return len(rows)

    async def holds(self, id: str, scope: MemoryScope) -> bool:
        """Whether a memory waits that may be seen."""
        return bool(await asyncio.to_thread(self._seen, id, scope, False))

    async def take_back(self, id: str, scope: MemoryScope) -> bool:
        """Forget a memory that the server cannot know; ``False`` if there is none such."""
        return bool(await asyncio.to_thread(self._seen, id, scope, True))

    def _seen(self, id: str, scope: MemoryScope, take_back: bool) -> int:
        rows = self._rows("SELECT * FROM waiting WHERE kind = 'memory' AND id = ?", id)
        seen = [row for row in rows if is_visible(row["project"], row["user_id"], scope)]
        if not take_back or not seen:
            return len(seen)
        with self._outbox.held() as held:
            gone = [
                held.execute(
                    "DELETE FROM waiting WHERE number = ? AND sent = 0", (row["number"],)
                ).rowcount
                for row in seen
            ]
            return sum(gone)

    async def clear(self, store: Store) -> None:
        """Deliver everything; ``StoreGone`` if something still waits, which comes first then."""
        await self.deliver(store)
        if await self.count():
            raise StoreGone("what was said before still waits for the database")

    async def deliver(self, store: Store) -> int:
        """Hand all over in order, each once; ``StoreGone`` if the server is still away."""
        patience = time.monotonic() + _PATIENCE
        while await self.count():
            with self._outbox.delivering() as mine:
                if mine:
                    return await self._deliver_all(store)
            if time.monotonic() > patience:
                break
            # Somebody else delivers, and nothing may overtake that.
            await asyncio.sleep(0.02)
        return 0

    async def _deliver_all(self, store: Store) -> int:
        # Asked first: a forget can take back what was never on its way.
        await get_value(store, "")
        delivered = 0
        try:
            while taken := await self._deliver_some(store):
                delivered += taken
        except StoreGone:
            raise
        except (StoreProblem, DiskFull):
            # It waits for the next time; what is to be saved now is not held up by it.
            return delivered
        return delivered

    async def _deliver_some(self, store: Store) -> int:
        box, rows = await asyncio.to_thread(self._next)
        if not rows:
            return 0
        if await _is_restored(store, box, rows):
            # The server has seen later numbers: they are counted anew, under another name.
            await asyncio.to_thread(self._rename)
            return await self._deliver_some(store)
        try:
            await _hand_over(store, box, rows)
        except (StoreGone, StoreBusy, StoreTimeout):
            raise
        except StoreProblem:
            await self._hand_over_each(store, box, rows)
        await asyncio.to_thread(self._clear, rows[-1]["number"])
        return len(rows)

    async def _hand_over_each(self, store: Store, box: str, rows: Sequence[Row]) -> None:
        """One that the server will never take must not keep all others waiting."""
        for row in rows:
            try:
                await _hand_over(store, box, [row])
            except (StoreGone, StoreBusy, StoreTimeout):
                raise
            except StoreProblem as problem:
                await asyncio.to_thread(self._set_aside, row, str(problem))

    def _next(self) -> tuple[str, list[Row]]:
        with self._outbox.held() as held:
            held.execute("UPDATE waiting SET sent = 1 WHERE sent = 0")
            rows = held.execute("SELECT * FROM waiting ORDER BY number LIMIT ?", (_BATCH,))
            return name_of(held), list(rows.fetchall())

    def _rename(self) -> None:
        with self._outbox.held() as held:
            held.execute("UPDATE box SET name = ?", (secrets.token_hex(16),))

    def _clear(self, last: int) -> None:
        with self._outbox.held() as held:
            held.execute("DELETE FROM waiting WHERE sent = 1 AND number <= ?", (last,))

    def _set_aside(self, row: Row, reason: str) -> None:
        with self._outbox.held() as held:
            held.execute(
                "INSERT INTO refused (number, kind, body, reason) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (row["number"], row["kind"], row["body"], reason),
            )


async def _hand_over(store: Store, box: str, rows: Sequence[Row]) -> None:
    key = f"outbox:{box}"
    async with store.transaction() as writing:
        last, _ = _read(await get_value(writing, key))
        for row in rows:
            if row["number"] > last:
                await _take(writing, box, row)
        newest = rows[-1]
        if newest["number"] > last:
            mark = f"{newest['number']} {newest['id']}"
            await put_value(writing, key, mark)


async def _is_restored(store: Store, box: str, rows: Sequence[Row]) -> bool:
    """Whether the file is an older copy of itself, from a backup: its numbers repeat then."""
    last, id = _read(await get_value(store, f"outbox:{box}"))
    same = [row["id"] == id for row in rows if row["number"] == last]
    # One that is waiting though it was taken was left by a crash, and is the last one taken.
    return rows[0]["number"] <= last and same != [True]


def _read(mark: str | None) -> tuple[int, str]:
    number, _, id = (mark or "0").partition(" ")
    return int(number), id


async def _take(writing: Queries, box: str, row: Row) -> None:
    if not row_is_whole("waiting", row):
        raise StoreProblem("it does not match its checksum")
    try:
        await take(writing, box, row)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreProblem(f"it makes no sense ({error})") from error
