"""Deliver the outbox to the database server: memories, sessions, their changes, and messages.

Each is written as it would have been at once, with the moment at which it happened. A session that
still waits is read from its entries, as its rows will be.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.errors import UsageError
from evercontext.memory.memory_table import (
    INSERT,
    NEXT_CHANGE,
    VISIBLE,
    Memory,
    MemoryScope,
    row_of,
    seen_by,
)
from evercontext.storage.row_checksum import checksum
from evercontext.storage.store import Queries, Row

LOCAL = 2**62
"""Ids of messages that wait begin here: above every id of a server, in the order of the queue."""
SPOKEN = ("session_id", "role", "content", "tool_calls", "tool_results")
"""What a message's checksum covers."""
Waiting = tuple[Memory, str | None]
"""A memory and the id of the one it replaces."""
_INSERT_SESSION = (
    "INSERT INTO sessions (id, started_at, project_path, model_used, user_id, metadata)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)
_INSERT_MESSAGE = (
    "INSERT INTO messages (session_id, role, content, tool_calls, tool_results, timestamp,"
    " user_id, trace_id, checksum, entry, message_type)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SET = {
    "title": "UPDATE sessions SET title = ? WHERE id = ?",
    "model_used": "UPDATE sessions SET model_used = ? WHERE id = ?",
    "ended_at": "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
    "reopened": "UPDATE sessions SET ended_at = NULL WHERE ? = 1 AND id = ?",
}
_KNOWN_THERE = (
    "SELECT id FROM messages WHERE session_id = ? AND entry IS NOT NULL"
    " AND substr(entry, length(entry) - 31) = ?"
)
"""A message by the name it was given when it was said, which ends its entry."""
_KNOWN = (
    "SELECT id FROM messages WHERE session_id IS NULL AND entry IS NOT NULL"
    " AND substr(entry, length(entry) - 31) = ?"
)
_PLACES = ("after", "through")
"""Names under which a session's metadata keep the id of a message."""


async def take(writing: Queries, box: str, row: Row) -> None:
    """Take one entry of the outbox called ``box`` over, unless it is known already."""
    await _TAKE[row["kind"]](writing, box, row)


async def _take_memory(writing: Queries, box: str, row: Row) -> None:
    # A commit whose answer was lost, or a line that is taken in again.
    known = await writing.fetch_one(
        "SELECT 1 AS one FROM memories WHERE project = ? AND user_id = ? AND id = ?",
        (row["project"], row["user_id"], row["id"]),
    )
    if known:
        return
    memory, supersedes = memory_in(row["body"])
    # The older one may have been forgotten meanwhile: the new words are kept all the same.
    if supersedes:
        with suppress(UsageError):
            await supersede(writing, supersedes, memory)
    await writing.execute_many(INSERT, await asyncio.to_thread(encoded, [memory]))


async def _take_session(writing: Queries, box: str, row: Row) -> None:
    session = json.loads(row["body"])
    await insert_session(writing, session)


async def _take_change(writing: Queries, box: str, row: Row) -> None:
    change = json.loads(row["body"])
    metadata = change.get("metadata") or {}
    for value in metadata.values():
        for name in _PLACES if isinstance(value, dict) else ():
            if value.get(name, 0) >= LOCAL:
                value[name] = await settled(writing, box, row["session"], value[name])
    await apply_change(writing, row["session"], change)


async def _take_message(writing: Queries, box: str, row: Row) -> None:
    message = json.loads(row["body"])
    entry = f"{box}:{row['number']}:{row['id']}"
    if known := await _known(writing, message["session_id"], row["id"]):
        # Its answer was lost, and it has a place in the queue by now.
        await writing.execute("UPDATE messages SET entry = ? WHERE id = ?", (entry, known["id"]))
        return
    session = await writing.fetch_one(
        "SELECT 1 AS one FROM sessions WHERE id = ?", (message["session_id"],)
    )
    # Said in a session that somebody has deleted since: it is deleted with it.
    if message["session_id"] and not session:
        return
    covered = [message[name] for name in SPOKEN]
    rest = (
        message["timestamp"],
        message["user_id"],
        message["trace_id"],
        checksum(covered),
        entry,
        message.get("message_type"),
    )
    await writing.execute(_INSERT_MESSAGE, (*covered, *rest))


async def _known(writing: Queries, session_id: str | None, name: str) -> Row | None:
    if session_id is None:
        return await writing.fetch_one(_KNOWN, (name,))
    return await writing.fetch_one(_KNOWN_THERE, (session_id, name))


_TAKE: dict[str, Callable[[Queries, str, Row], Awaitable[None]]] = {
    "memory": _take_memory,
    "session": _take_session,
    "change": _take_change,
    "message": _take_message,
}


async def insert_session(writing: Queries, fields: Mapping[str, Any]) -> None:
    """Begin a session, unless it is known."""
    names = ("id", "started_at", "project_path", "model_used", "user_id")
    metadata = json.dumps(fields["metadata"], ensure_ascii=False)
    await writing.execute(_INSERT_SESSION, (*(fields[name] for name in names), metadata))


async def apply_change(writing: Queries, id: str, change: Mapping[str, Any]) -> None:
    """Change a session: its columns by name, and single facts of its metadata."""
    for name, statement in _SET.items():
        if name in change:
            await writing.execute(statement, (change[name], id))
    if change.get("metadata"):
        row = await writing.fetch_one("SELECT metadata FROM sessions WHERE id = ?", (id,))
        merged = {**metadata_of(row), **change["metadata"]}
        await writing.execute(
            "UPDATE sessions SET metadata = ? WHERE id = ?",
            (json.dumps(merged, ensure_ascii=False), id),
        )


def metadata_of(row: Row | None) -> dict[str, Any]:
    """A session's facts; what is no JSON is none."""
    try:
        metadata = json.loads(row["metadata"] or "{}") if row else {}
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}


async def settled(queries: Queries, box: str, session_id: str, id: int) -> int:
    """The place in a session that an ``id`` from the queue means, in the server's own ids."""
    rows = await queries.fetch_all(
        "SELECT id, entry FROM messages WHERE session_id = ? ORDER BY id", (session_id,)
    )
    later = [row["id"] for row in rows if _number(row["entry"], box) > id - LOCAL]
    if later:
        return int(min(later)) - 1
    return int(rows[-1]["id"]) if rows else 0


def _number(entry: str | None, box: str) -> int:
    name, _, rest = (entry or "").partition(":")
    return int(rest.partition(":")[0]) if name == box else 0


def encoded(memories: Sequence[Memory]) -> list[list[Any]]:
    """Return the rows of memories, with their terms and vectors."""
    from evercontext.memory.encoding import encode_terms, encode_vectors

    encoder, vectors = encode_vectors([memory.content for memory in memories])
    return [
        row_of(memory, encoder, encode_terms(memory.content), vector)
        for memory, vector in zip(memories, vectors, strict=True)
    ]


async def supersede(writing: Queries, id: str, memory: Memory) -> None:
    """End an older memory's validity at the moment of a new one."""
    scope = seen_by(MemoryScope(memory.project or "", memory.user_id or ""))
    changed = await writing.execute(
        f"UPDATE memories SET state = 'superseded', valid_until = ?, superseded_by = ?,"  # noqa: S608 - made of fixed words
        f" change = {NEXT_CHANGE} WHERE id = ? AND state = 'active' AND {VISIBLE}",
        (memory.created_at, memory.id, id, *scope),
    )
    if not changed:
        raise UsageError(f"there is no memory {id} to replace", fix="See `evercontext memory list`")


def body_of(memory: Memory, supersedes: str | None) -> str:
    """A memory as it waits."""
    values = {field.name: getattr(memory, field.name) for field in fields(memory)}
    values["origin"] = dict(memory.origin)
    return json.dumps({"memory": values, "supersedes": supersedes})


def memory_in(body: str) -> Waiting:
    """The memory that waited."""
    waiting = json.loads(body)
    values = waiting["memory"]
    values["memory_type"] = MemoryType(values["memory_type"])
    values["source_type"] = SourceType(values["source_type"])
    return Memory(**values), waiting["supersedes"]


def session_in(entries: Sequence[Row]) -> Row | None:
    """The session's row with every change since; ``None`` if the server knows how it began."""
    begun = next((entry for entry in entries if entry["kind"] == "session"), None)
    if begun is None:
        return None
    row: dict[str, Any] = {"ended_at": None, "title": None, **json.loads(begun["body"])}
    for entry in entries:
        if entry["kind"] == "change":
            _change(row, json.loads(entry["body"]))
    messages = messages_in(entries)
    last = messages[-1]["timestamp"] if messages else None
    return row | {
        "metadata": json.dumps(row["metadata"]),
        "messages": len(messages),
        "last_at": last,
    }


def _change(row: dict[str, Any], change: dict[str, Any]) -> None:
    if "reopened" in change:
        row["ended_at"] = None
    if "ended_at" in change:
        row["ended_at"] = row["ended_at"] or change["ended_at"]
    row.update({name: change[name] for name in ("title", "model_used") if name in change})
    row["metadata"] = {**row["metadata"], **(change.get("metadata") or {})}


def messages_in(entries: Sequence[Row]) -> list[Row]:
    """What was said, as rows of the table of messages."""
    return [
        {"id": LOCAL + entry["number"], **json.loads(entry["body"])}
        for entry in entries
        if entry["kind"] == "message"
    ]
