"""Store, list, replace and forget memories without a model (``MemoryStore``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.errors import StoreClash, StoreGone, UsageError
from evercontext.events.redaction import Clean, cleaned, unchanged
from evercontext.memory.memory_table import (
    COLUMNS,
    INSERT,
    NEXT_CHANGE,
    VISIBLE,
    Memory,
    MemoryScope,
    digest_of,
    memory_of,
    new_memory_id,
    seen_by,
    stamp,
)
from evercontext.memory.outbox import queue_of, unless_clashing
from evercontext.memory.outbox_delivery import encoded, supersede
from evercontext.storage.row_checksum import checksum
from evercontext.storage.store import Store

LONGEST = 100_000
"""Characters of one memory."""
QUEUED = "queued: PostgreSQL is away"
_BATCH = 500
# The class below has a method called ``list``, which hides the type inside it.
Memories = list[Memory]
Rows = list[list[Any]]


@dataclass(slots=True)
class _MemoryDraft:
    """A memory on its way."""

    memory: Memory
    rows: Rows
    supersedes: str | None
    sent: bool = False
    """The server may have it, whatever becomes of its answer."""


class MemoryStore:
    """The memories of one database; every call says for whom."""

    def __init__(self, store: Store, clean: Clean = unchanged) -> None:
        self._store, self._clean = store, clean
        self._queue = queue_of(store)

    async def save_memory(
        self,
        content: str,
        memory_type: MemoryType | str = MemoryType.LONGTERM,
        source_type: SourceType | str = SourceType.THOUGHT,
        *,
        user_id: str | None = None,
        project: str | None = None,
        speaker: str | None = None,
        session_id: str | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        importance: float = 0.5,
        untrusted: bool = False,
        origin: Mapping[str, Any] | None = None,
        supersedes: str | None = None,
        id: str | None = None,
    ) -> Memory:
        """Keep one memory; the same words again are one memory told twice.

        What a tool said is always ``untrusted``. ``supersedes`` ends an older memory's validity
        at this moment: it is kept, and no longer found. While the database server is away it is
        kept on this machine and comes back as ``queued``: not stored yet.
        """
        source = SourceType(source_type)
        memory = Memory(
            id=id or new_memory_id(),
            content=content,
            memory_type=MemoryType(memory_type),
            source_type=source,
            created_at=stamp(created_at),
            user_id=user_id,
            project=project,
            session_id=session_id,
            speaker=speaker,
            importance=min(1.0, max(0.0, importance)),
            untrusted=untrusted or source is SourceType.TOOL,
            origin=origin or {},
            expires_at=stamp(expires_at) if expires_at else None,
        )
        draft = _MemoryDraft(memory, await self._rows([memory]), supersedes)
        try:
            await self.deliver()
            return await unless_clashing(lambda: self._write(draft))
        except (StoreGone, StoreClash):
            if self._queue is None:
                raise
            stored = self._without_secrets(memory)
            await self._queue.put([(stored, supersedes)], sent=draft.sent)
            return replace(stored, queued=True)

    async def _write(self, draft: _MemoryDraft) -> Memory:
        memory = draft.memory
        # The rows themselves keep two of the same words apart: nobody else has to wait.
        async with self._store.transaction("") as writing:
            draft.sent = True
            if draft.supersedes:
                await supersede(writing, draft.supersedes, memory)
            stored = await writing.fetch_one(f"{INSERT} RETURNING {COLUMNS}", draft.rows[0])
        assert stored is not None
        return memory_of(stored)

    async def deliver(self) -> int:
        """Store what waits for the server; ``StoreGone`` if something does and it is away."""
        return await self._queue.deliver(self._store) if self._queue else 0

    async def put_off(self, memories: Sequence[Memory]) -> bool:
        """Queue what ``take_in`` could not; ``False`` where there is no queue."""
        if self._queue is None:
            return False
        for memory in memories:
            _check(memory)
        # One of a known id is left as it is, and whether it is known only the server can say.
        waiting = [(self._without_secrets(memory), None) for memory in memories]
        await self._queue.put(waiting, sent=True)
        return True

    async def save_many(self, memories: Sequence[Memory]) -> int:
        """Keep many memories, such as the turns of a conversation; return how many were new."""
        await self.deliver()
        stored = 0
        for at in range(0, len(memories), _BATCH):
            part = memories[at : at + _BATCH]
            before = await self._count(part)
            await self._store.execute_many(INSERT, await self._rows(part))
            stored += await self._count(part) - before
        return stored

    async def take_in(self, memories: Sequence[Memory]) -> int:
        """Keep those whose ids are new to their user and project; return how many that was."""
        fresh: dict[str, Memory] = {}
        for memory in memories:
            fresh.setdefault(memory.id, memory)
        if not fresh:
            return 0
        first, marks = memories[0], ", ".join("?" * len(fresh))
        known = await self._store.fetch_all(
            f"SELECT id FROM memories WHERE project = ? AND user_id = ? AND id IN ({marks})",  # noqa: S608 - made of fixed words
            (first.project or "", first.user_id or "", *fresh),
        )
        for row in known:
            fresh.pop(row["id"], None)
        return await self.save_many(list(fresh.values()))

    async def whole_id(
        self, beginning: str, *, user_id: str | None = None, project: str | None = None
    ) -> str | None:
        """Return the one id that is this or begins so; ``UsageError`` if several do."""
        if self._queue and await self._queue.holds(
            beginning, MemoryScope(project or "", user_id or "")
        ):
            return beginning
        rows = await self._store.fetch_all(
            f"SELECT id FROM memories WHERE substr(id, 1, ?) = ? AND state <> 'forgotten'"  # noqa: S608 - made of fixed words
            f" AND {VISIBLE} ORDER BY number LIMIT 50",
            (len(beginning), beginning, *seen_by(MemoryScope(project or "", user_id or ""))),
        )
        ids = [str(row["id"]) for row in rows]
        if beginning in ids or len(ids) < 2:
            return beginning if beginning in ids else next(iter(ids), None)
        raise UsageError(f"{len(ids)} memories begin with {beginning}", fix="Give more of the id")

    async def get(
        self, id: str, *, user_id: str | None = None, project: str | None = None
    ) -> Memory | None:
        """Return one memory if this user in this project may see it."""
        row = await self._store.fetch_one(
            f"SELECT {COLUMNS} FROM memories WHERE id = ? AND state <> 'forgotten'"  # noqa: S608 - made of fixed words
            f" AND {VISIBLE} ORDER BY number DESC",
            (id, *seen_by(MemoryScope(project or "", user_id or ""))),
        )
        return memory_of(row) if row else None

    async def list(
        self,
        *,
        user_id: str | None = None,
        project: str | None = None,
        memory_type: MemoryType | None = None,
        state: str = "active",
        valid_at: datetime | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Memories:
        """Return what this user in this project may see, newest first.

        ``valid_at`` looks back: what held then, superseded since or not. ``before`` is an id to
        go on after.
        """
        conditions, values = _conditions(memory_type, state, valid_at)
        scope = seen_by(MemoryScope(project or "", user_id or ""))
        paging = " AND number < (SELECT max(number) FROM memories WHERE id = ?)" if before else ""
        rows = await self._store.fetch_all(
            f"SELECT {COLUMNS} FROM memories WHERE {VISIBLE} AND {conditions}{paging}"  # noqa: S608 - made of fixed words
            " ORDER BY number DESC LIMIT ?",
            (*scope, *values, *([before] if before else []), limit),
        )
        return [memory_of(row) for row in rows]

    async def forget(
        self, id: str, *, user_id: str | None = None, project: str | None = None
    ) -> bool:
        """Wipe one memory's words for good; ``False`` if there is none such to be seen."""
        scope = MemoryScope(project or "", user_id or "")
        if self._queue and await self._queue.take_back(id, scope):
            return True
        await self.deliver()
        blank = digest_of("", id)
        wiped = checksum((id, SourceType.THOUGHT.value, "", 0))
        changed = await self._store.execute(
            f"UPDATE memories SET state = 'forgotten', content = '', digest = ?, terms = NULL,"  # noqa: S608 - made of fixed words
            " vector = NULL, origin = NULL, speaker = NULL, source_type = 'thought', untrusted = 0,"
            f" checksum = ?, change = {NEXT_CHANGE}"
            f" WHERE id = ? AND state <> 'forgotten' AND {VISIBLE}",
            (blank, wiped, id, *seen_by(scope)),
        )
        if changed:
            await self._store.wipe_deleted()
        return changed > 0

    async def archive(
        self, id: str, *, user_id: str | None = None, project: str | None = None
    ) -> bool:
        """Put one memory away: kept and listed on demand, never found."""
        changed = await self._store.execute(
            f"UPDATE memories SET state = 'archived', change = {NEXT_CHANGE}"  # noqa: S608 - made of fixed words
            f" WHERE id = ? AND state = 'active' AND {VISIBLE}",
            (id, *seen_by(MemoryScope(project or "", user_id or ""))),
        )
        return changed > 0

    async def archive_expired(self, now: datetime | None = None) -> int:
        """Put away what has expired; it was not found any more since then."""
        return await self._store.execute(
            f"UPDATE memories SET state = 'archived', change = {NEXT_CHANGE}"  # noqa: S608 - made of fixed words
            " WHERE state = 'active' AND expires_at IS NOT NULL AND expires_at <= ?",
            (stamp(now),),
        )

    async def export(
        self, *, user_id: str | None = None, project: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield every active memory that may be seen, oldest first, as plain JSON."""
        scope, after = seen_by(MemoryScope(project or "", user_id or "")), 0
        while True:
            rows = await self._store.fetch_all(
                f"SELECT {COLUMNS} FROM memories WHERE {VISIBLE} AND state = 'active'"  # noqa: S608 - made of fixed words
                " AND number > ? ORDER BY number LIMIT ?",
                (*scope, after, _BATCH),
            )
            for row in rows:
                yield memory_of(row).to_json()
            if len(rows) < _BATCH:
                return
            after = rows[-1]["number"]

    async def _rows(self, memories: Sequence[Memory]) -> Rows:
        return await asyncio.to_thread(self._encoded, memories)

    def _encoded(self, memories: Sequence[Memory]) -> Rows:
        for memory in memories:
            _check(memory)
        return encoded([self._without_secrets(memory) for memory in memories])

    def _without_secrets(self, memory: Memory) -> Memory:
        return replace(
            memory,
            content=self._clean(memory.content),
            speaker=memory.speaker and self._clean(memory.speaker),
            origin=cleaned(memory.origin, self._clean),
        )

    async def _count(self, memories: Sequence[Memory]) -> int:
        """Return how many of these are stored under their own ids."""
        ids: dict[tuple[str, str], list[str]] = {}
        for memory in memories:
            ids.setdefault((memory.project or "", memory.user_id or ""), []).append(memory.id)
        stored = 0
        for owner, own in ids.items():
            marks = ", ".join("?" * len(own))
            row = await self._store.fetch_one(
                f"SELECT count(*) AS n FROM memories WHERE project = ? AND user_id = ?"  # noqa: S608 - made of fixed words
                f" AND id IN ({marks})",
                (*owner, *own),
            )
            stored += int(row["n"]) if row else 0
        return stored


def _check(memory: Memory) -> None:
    if not memory.content.strip():
        raise UsageError("a memory needs some words", fix="Say what to remember")
    if any("\ud800" <= character <= "\udfff" for character in memory.content):
        raise UsageError("a memory must be valid UTF-8", fix="Leave lone surrogates out")
    if len(memory.content) > LONGEST:
        raise UsageError(f"a memory may have {LONGEST:,} characters", fix="Keep its gist")


def _conditions(
    memory_type: MemoryType | None, state: str, valid_at: datetime | None
) -> tuple[str, list[Any]]:
    parts: list[tuple[str, Iterable[Any]]] = []
    if valid_at:
        moment = stamp(valid_at)
        parts.append(("state IN ('active', 'superseded') AND valid_from <= ?", [moment]))
        parts.append(("(valid_until IS NULL OR valid_until > ?)", [moment]))
    else:
        parts.append(("state = ?", [state]))
        if state == "active":
            parts.append(("(expires_at IS NULL OR expires_at > ?)", [stamp()]))
    if memory_type:
        parts.append(("memory_type = ?", [memory_type.value]))
    return " AND ".join(text for text, _ in parts), [v for _, values in parts for v in values]
