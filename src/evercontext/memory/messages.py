"""Messages: everything said in a session, saved as it happens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evercontext.domain.message import Message, ToolCall
from evercontext.events.redact import Clean, cleaned, unchanged
from evercontext.storage.checksum import checksum
from evercontext.storage.store import Row, Store

# The class below has a method called ``list``, which hides the type inside it.
History = list[Message]
Numbered = list[tuple[int, Message]]
_ROLES = {"kana": "assistant", "yuno": "assistant"}
_INSERT = """
    INSERT INTO messages
        (session_id, role, content, tool_calls, tool_results, user_id, trace_id, checksum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id, timestamp
"""


@dataclass(frozen=True, slots=True)
class MessageCreate:
    """A message to be kept. ``message_type`` is a role, or who speaks for it (kana, yuno)."""

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

    @property
    def message_type(self) -> str:
        """The role, under the name the context assembler asks for."""
        return self.role


class MessageRepository:
    """The ``messages`` table."""

    def __init__(self, store: Store, clean: Clean = unchanged) -> None:
        self._store, self._clean = store, clean

    async def create(self, message: MessageCreate) -> StoredMessage:
        """Keep one message; when this returns it survives a crash."""
        message = replace(
            message,
            content=self._clean(message.content),
            tool_calls=_cleaned(message.tool_calls, self._clean),
            tool_results=_cleaned(message.tool_results, self._clean),
        )
        role = _ROLES.get(message.message_type, message.message_type)
        covered = (message.session_id, role, message.content, message.tool_calls,
                   message.tool_results)  # fmt: skip
        async with self._store.transaction() as writing:
            row = await writing.fetch_one(
                _INSERT, (*covered, message.user_id, message.trace_id, checksum(covered))
            )
        assert row is not None
        return StoredMessage(
            row["id"], message.session_id, row["timestamp"], role, message.content,
            message.tool_calls, message.tool_results, message.user_id, message.trace_id,
        )  # fmt: skip

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
    ) -> tuple[list[StoredMessage], int]:
        """The newest messages, oldest first among them, and how many there are in all."""
        where, values = _where(user_id, session_id)
        counted = await self._store.fetch_one(
            f"SELECT count(*) AS n FROM messages {where}",  # noqa: S608 - made of fixed words
            values,
        )
        rows = await self._store.fetch_all(
            f"SELECT * FROM messages {where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - likewise
            (*values, limit),
        )
        return [_stored(row) for row in reversed(rows)], int(counted["n"]) if counted else 0

    async def conversation(self, session_id: str) -> History:
        """A session's history as the model is given it."""
        return [message for _, message in await self.numbered(session_id)]

    async def numbered(self, session_id: str, after: int = 0) -> Numbered:
        """The same with each message's row id, from those after ``after`` on."""
        rows = await self._store.fetch_all(
            "SELECT * FROM messages WHERE session_id = ? AND id > ? ORDER BY id",
            (session_id, after),
        )
        return [(row["id"], _message(row)) for row in rows]

    async def copy(self, source: str, target: str) -> None:
        """Give another session the same history, so that both can go their own way."""
        rows = await self._store.fetch_all(
            "SELECT * FROM messages WHERE session_id = ? ORDER BY id", (source,)
        )
        columns = ("role", "content", "tool_calls", "tool_results")
        values = []
        for row in rows:
            covered = (target, *(row[name] for name in columns))
            values.append((*covered, row["user_id"], row["trace_id"], checksum(covered)))
        await self._store.execute_many(
            "INSERT INTO messages (session_id, role, content, tool_calls, tool_results, user_id,"
            " trace_id, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )

    async def forget_after(self, session_id: str, id: int) -> int:
        """Take back what was said after message ``id``; return how many messages that was."""
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


def _where(user_id: str | None, session_id: str | None) -> tuple[str, tuple[str, ...]]:
    given = [("user_id = ?", user_id), ("session_id = ?", session_id)]
    used = [(clause, value) for clause, value in given if value is not None]
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
    fields = ("id", "session_id", "timestamp", "role", "tool_calls", "tool_results", "user_id",
              "trace_id")  # fmt: skip
    return StoredMessage(**{name: row[name] for name in fields}, content=row["content"] or "")


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
    found = json.loads(text) if text else []
    return found if isinstance(found, list) else []
