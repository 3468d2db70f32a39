"""Store the messages of a session as they are sent."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evercontext.domain.message import Message, ToolCall
from evercontext.errors import StoreClash, StoreGone, UsageError
from evercontext.events.redaction import Clean, cleaned, unchanged
from evercontext.memory.outbox import queue_of, unless_clashing
from evercontext.memory.outbox_delivery import LOCAL, SPOKEN, messages_in, session_in, settled
from evercontext.memory.sessions import now, session_lock
from evercontext.storage.row_checksum import checksum
from evercontext.storage.store import Row, Store

# The class below has a method called ``list``, which hides the type inside it.
History = list[Message]
Numbered = list[tuple[int, Message]]
Page = tuple[list["StoredMessage"], int]
_ROLES = {"kana": "assistant", "yuno": "assistant", "system": "tool"}
"""The role under which a type is kept. No conversation shows a tool's rows, nor the system's."""
_SPOKEN = "coalesce(message_type, '') <> 'system'"
_INSERT = """
    INSERT INTO messages
        (session_id, role, content, tool_calls, tool_results, user_id, trace_id, checksum, entry,
         message_type)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id, timestamp
"""


@dataclass(frozen=True, slots=True)
class MessageCreate:
    """A message to be kept.

    ``message_type`` is a role (user, assistant, tool), or who speaks: kana, yuno, system; small or
    capital letters are the same.
    """

    user_id: str | None
    content: str
    message_type: str
    session_id: str | None = None
    tool_calls: str | None = None
    tool_results: str | None = None
    trace_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as it is kept."""

    id: int
    session_id: str | None
    timestamp: str
    role: str
    content: str
    tool_calls: str | None = None
    tool_results: str | None = None
    user_id: str | None = None
    trace_id: str | None = None
    message_type: str = ""
    """Who spoke: kana, yuno, system, or the role itself."""


class MessageRepository:
    """The ``messages`` table; while a server is away, what is said waits."""

    def __init__(self, store: Store, clean: Clean = unchanged) -> None:
        self._store, self._clean = store, clean
        self._queue = queue_of(store)

    async def create(self, message: MessageCreate) -> StoredMessage:
        """Keep one message; when this returns it survives a crash.

        While the database server is away it is kept on this machine, under an id of the queue.
        """
        row = self._row_of(message)
        if self._queue is None:
            return await self._write(row, None)
        # By this name the server knows it, should its answer be lost.
        entry = secrets.token_hex(16)
        try:
            await self._delivered()
            return await unless_clashing(lambda: self._write(row, entry))
        except (StoreGone, StoreClash):
            session = message.session_id or ""
            number = await self._queue.put_talk("message", session, row, id=entry)
            return _stored({"id": LOCAL + number, **row})

    def _row_of(self, message: MessageCreate) -> Row:
        """The row to be, without secrets."""
        kind = _type_of(message)
        return {
            "session_id": message.session_id,
            "role": _ROLES.get(kind, kind),
            "message_type": kind if kind in _ROLES else None,
            "content": self._clean(message.content),
            "tool_calls": _cleaned(message.tool_calls, self._clean),
            "tool_results": _cleaned(message.tool_results, self._clean),
            "timestamp": now(),
            "user_id": message.user_id,
            "trace_id": message.trace_id,
        }

    async def _write(self, message: Row, entry: str | None) -> StoredMessage:
        covered = [message[name] for name in SPOKEN]
        values = (
            *covered,
            message["user_id"],
            message["trace_id"],
            checksum(covered),
            entry,
            message["message_type"],
        )
        async with self._store.transaction(session_lock(message["session_id"])) as writing:
            row = await writing.fetch_one(_INSERT, values)
        assert row is not None
        return _stored({**message, **row})

    async def settled(self, session_id: str, id: int) -> int:
        """The id that a place in a session has by now: those of the queue end with it."""
        if id < LOCAL or self._queue is None:
            return id
        try:
            await self._delivered()
            return await settled(self._store, await self._queue.name(), session_id, id)
        except StoreGone:
            return id

    async def _delivered(self) -> None:
        """Let the server know all that was said before; ``StoreGone`` if it cannot."""
        if self._queue:
            await self._queue.clear(self._store)

    async def _waiting(self, session_id: str | None) -> list[Row] | None:
        """What was said in a session that began while the server was away."""
        entries = await self._queue.talk(session_id) if self._queue and session_id else []
        return messages_in(entries) if session_in(entries) else None

    async def append(
        self, session_id: str, message: Message, *, trace_id: str | None = None
    ) -> StoredMessage:
        """Keep one turn of a conversation, its tool calls and results included (N36)."""
        calls = json.dumps([_call(call) for call in message.tool_calls], ensure_ascii=False)
        is_result = message.role == "tool"
        results = {"id": message.tool_call_id, "name": message.tool_name, "result": message.content}
        return await self.create(
            MessageCreate(
                user_id=None,
                content=message.content,
                message_type=message.role,
                session_id=session_id,
                tool_calls=calls if message.tool_calls else None,
                tool_results=json.dumps([results], ensure_ascii=False) if is_result else None,
                trace_id=trace_id,
            )
        )

    async def list(
        self, *, user_id: str | None = None, session_id: str | None = None, limit: int = 10
    ) -> Page:
        """The newest messages, the newest first, and how many there are in all."""
        try:
            await self._delivered()
            return await self._listed(user_id, session_id, limit)
        except StoreGone:
            rows = await self._waiting(session_id)
            if rows is None:
                raise
            return [_stored(row) for row in rows[::-1][:limit]], len(rows)

    async def _listed(self, user_id: str | None, session_id: str | None, limit: int) -> Page:
        where, values = _where(user_id, session_id)
        counted = await self._store.fetch_one(
            f"SELECT count(*) AS n FROM messages {where}",  # noqa: S608 - made of fixed words
            values,
        )
        rows = await self._store.fetch_all(
            f"SELECT * FROM messages {where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - likewise
            (*values, limit),
        )
        return [_stored(row) for row in rows], int(counted["n"]) if counted else 0

    async def conversation(self, session_id: str) -> History:
        """A session's history as the model is given it."""
        return [message for _, message in await self.numbered(session_id)]

    async def numbered(self, session_id: str, after: int = 0) -> Numbered:
        """The same with each message's row id, from those after ``after`` on."""
        try:
            await self._delivered()
            rows = await self._store.fetch_all(
                f"SELECT * FROM messages WHERE session_id = ? AND id > ? AND {_SPOKEN} ORDER BY id",  # noqa: S608 - made of fixed words
                (session_id, after),
            )
        except StoreGone:
            waiting = await self._waiting(session_id)
            if waiting is None:
                raise
            rows = [
                row for row in waiting if row["id"] > after and row.get("message_type") != "system"
            ]
        return [(row["id"], _message(row)) for row in rows]

    async def copy(self, source: str, target: str) -> None:
        """Give another session the same history, so that both can go their own way."""
        await self._delivered()
        rows = await self._store.fetch_all(
            "SELECT * FROM messages WHERE session_id = ? ORDER BY id", (source,)
        )
        columns = ("role", "content", "tool_calls", "tool_results")
        values = []
        for row in rows:
            covered = (target, *(row[name] for name in columns))
            rest = (row["user_id"], row["trace_id"], checksum(covered), row["message_type"])
            values.append((*covered, *rest))
        await self._store.execute_many(
            "INSERT INTO messages (session_id, role, content, tool_calls, tool_results, user_id,"
            " trace_id, checksum, message_type) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )

    async def forget_after(self, session_id: str, id: int) -> int:
        """Take back what was said after message ``id``; return how many messages that was."""
        try:
            await self._delivered()
        except StoreGone:
            if self._queue is None or not session_in(await self._queue.talk(session_id)):
                raise
            # Renumbering from before it waited come first, whatever their number.
            return await self._queue.take_back_talk(session_id, max(0, id - LOCAL))
        which = (session_id, id)
        async with self._store.transaction() as writing:
            await writing.execute(
                "DELETE FROM message_words WHERE rowid IN"
                " (SELECT id FROM messages WHERE session_id = ? AND id > ?)",
                which,
            )
            return await writing.execute(
                "DELETE FROM messages WHERE session_id = ? AND id > ?", which
            )


def _type_of(message: MessageCreate) -> str:
    """Return a message's type in small letters; an enumeration's member counts as its value."""
    kind = str(getattr(message.message_type, "value", message.message_type)).lower()
    if kind not in (known := ("user", "assistant", "tool", *_ROLES)):
        raise UsageError(
            f"message_type {kind[:40]!r} is unknown", fix=f"Use one of {', '.join(known)}"
        )
    return kind


def _where(user_id: str | None, session_id: str | None) -> tuple[str, tuple[str, ...]]:
    values = [("user_id = ?", user_id), ("session_id = ?", session_id)]
    used = [(clause, value) for clause, value in values if value is not None]
    words = " AND ".join(clause for clause, _ in used)
    return (f"WHERE {words}" if words else ""), tuple(value for _, value in used)


def _cleaned(text: str | None, clean: Clean) -> str | None:
    """Clean the values inside JSON: its own text could lose a quote with a secret."""
    if not text:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return clean(text)
    safe = cleaned(value, clean)
    return text if safe == value else json.dumps(safe, ensure_ascii=False)


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def _stored(row: Row) -> StoredMessage:
    fields = (
        "id",
        "session_id",
        "timestamp",
        "role",
        "tool_calls",
        "tool_results",
        "user_id",
        "trace_id",
    )
    return StoredMessage(
        **{name: row[name] for name in fields},
        content=row["content"] or "",
        message_type=row.get("message_type") or row["role"],
    )


def _message(row: Row) -> Message:
    result = next(iter(_parsed(row["tool_results"])), {})
    return Message(
        row["role"],
        row["content"] or "",
        tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in _parsed(row["tool_calls"])),
        tool_call_id=result.get("id"),
        tool_name=result.get("name"),
    )


def _parsed(text: str | None) -> Sequence[dict[str, Any]]:
    parsed = json.loads(text) if text else []
    return parsed if isinstance(parsed, list) else []
