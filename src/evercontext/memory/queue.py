"""Memories that wait for the database server: kept here, not yet stored, taken over once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.errors import StoreGone, StoreProblem
from evercontext.memory.memory_table import Memory, Scope, is_visible
from evercontext.storage.outbox import Outbox, name_of
from evercontext.storage.store import Queries, Store

_BATCH = 200
_MARK = "SELECT value FROM kept WHERE key = ?"
_SET_MARK = (
    "INSERT INTO kept (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
Waiting = tuple[Memory, str | None]
"""A memory and the id of the one it replaces."""
Take = Callable[[Queries, Memory, str | None], Awaitable[None]]


class MemoryQueue:
    """The memories that wait for one server."""

    def __init__(self, path: Path) -> None:
        self._outbox = Outbox(path)

    async def put(self, waiting: Sequence[Waiting], *, sent: bool) -> None:
        """Keep them; when this returns they survive a crash. ``sent``: the server may know them."""
        await asyncio.to_thread(self._put, waiting, sent)

    def _put(self, waiting: Sequence[Waiting], sent: bool) -> None:
        with self._outbox.held() as held:
            held.executemany(
                "INSERT INTO waiting (id, project, user_id, body, sent) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                [(m.id, m.project or "", m.user_id or "", _body(m, old), sent)
                 for m, old in waiting],
            )  # fmt: skip

    async def count(self) -> int:
        """How many wait."""
        return await asyncio.to_thread(self._outbox.count)

    async def holds(self, id: str, scope: Scope) -> bool:
        """Whether one waits that may be seen."""
        return bool(await asyncio.to_thread(self._seen, id, scope, False))

    async def take_back(self, id: str, scope: Scope) -> bool:
        """Forget one that the server cannot know; ``False`` if there is none such."""
        return bool(await asyncio.to_thread(self._seen, id, scope, True))

    def _seen(self, id: str, scope: Scope, take_back: bool) -> int:
        if not self._outbox.count():
            return 0
        with self._outbox.held() as held:
            rows = held.execute("SELECT * FROM waiting WHERE id = ?", (id,)).fetchall()
            seen = [row for row in rows if is_visible(row["project"], row["user_id"], scope)]
            if take_back:
                seen = [row for row in seen if not row["sent"]]
                for row in seen:
                    held.execute("DELETE FROM waiting WHERE number = ?", (row["number"],))
            return len(seen)

    async def deliver(self, store: Store, take: Take) -> int:
        """Hand all over in order, each once; ``StoreGone`` if the server is still away."""
        if not await self.count():
            return 0
        # Asked first: a forget can take back what was never on its way.
        await store.fetch_one(_MARK, ("",))
        delivered = 0
        try:
            while taken := await self._deliver_some(store, take):
                delivered += taken
        except StoreGone:
            raise
        except StoreProblem:
            # It waits for the next time; what is to be saved now is not held up by it.
            return delivered
        return delivered

    async def _deliver_some(self, store: Store, take: Take) -> int:
        await asyncio.to_thread(self._send)
        with ExitStack() as stack:
            # Held until the server has committed: nobody else delivers or takes back meanwhile.
            held = await asyncio.to_thread(stack.enter_context, self._outbox.held())
            found = held.execute("SELECT * FROM waiting ORDER BY number LIMIT ?", (_BATCH,))
            # Not one of a later number before one of an earlier: the server counts on it.
            rows = list(takewhile(lambda row: row["sent"], found.fetchall()))
            if rows:
                await _hand_over(store, take, f"outbox:{name_of(held)}", rows)
                _clear(held, rows[-1]["number"])
            return len(rows)

    def _send(self) -> None:
        with self._outbox.held() as held:
            held.execute("UPDATE waiting SET sent = 1 WHERE sent = 0")


async def _hand_over(store: Store, take: Take, key: str, rows: Sequence[dict[str, Any]]) -> None:
    async with store.transaction() as writing:
        mark = await writing.fetch_one(_MARK, (key,))
        last = int(mark["value"]) if mark else 0
        for row in rows:
            if row["number"] > last and not await _known(writing, row):
                await take(writing, *_waiting(row["body"]))
        await writing.execute(_SET_MARK, (key, str(max(last, rows[-1]["number"]))))


async def _known(writing: Queries, row: dict[str, Any]) -> bool:
    """Whether the id is there: a commit whose answer was lost, or a line that is taken in again."""
    return bool(await writing.fetch_one(
        "SELECT 1 AS one FROM memories WHERE project = ? AND user_id = ? AND id = ?",
        (row["project"], row["user_id"], row["id"]),
    ))  # fmt: skip


def _clear(held: Connection, last: int) -> None:
    held.execute("DELETE FROM waiting WHERE sent = 1 AND number <= ?", (last,))


def _body(memory: Memory, supersedes: str | None) -> str:
    values = {field.name: getattr(memory, field.name) for field in fields(memory)}
    values["origin"] = dict(memory.origin)
    return json.dumps({"memory": values, "supersedes": supersedes})


def _waiting(body: str) -> Waiting:
    told = json.loads(body)
    values = told["memory"]
    values["memory_type"] = MemoryType(values["memory_type"])
    values["source_type"] = SourceType(values["source_type"])
    return Memory(**values), told["supersedes"]
