"""Read and write the ``memories`` table, and check access to its rows.

A memory is seen by its user in its project. One without a user belongs to the project and is
shared in it; a user's memory without a project goes with the user everywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.storage.row_checksum import CHECKED, checksum
from evercontext.storage.store import Row


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """On whose behalf one looks: a user in a project; empty means none."""

    project: str = ""
    user: str = ""


VISIBLE = (
    "((project = ? AND user_id = '') OR (project = ? AND user_id = ?)"
    " OR (project = '' AND user_id = ? AND user_id <> ''))"
)
"""The one rule of who sees what, as a condition; its values come from ``seen_by``."""


def seen_by(scope: MemoryScope) -> tuple[str, str, str, str]:
    """Return the values of ``VISIBLE``."""
    return scope.project, scope.project, scope.user, scope.user


def is_visible(project: str, user: str, scope: MemoryScope) -> bool:
    """``VISIBLE`` for what is in no table of memories yet."""
    if project == scope.project and user in ("", scope.user):
        return True
    return project == "" and user == scope.user and user != ""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as it is kept."""

    id: str
    content: str
    memory_type: MemoryType
    source_type: SourceType
    created_at: str
    user_id: str | None = None
    project: str | None = None
    session_id: str | None = None
    speaker: str | None = None
    importance: float = 0.5
    untrusted: bool = False
    """It came from a tool's output or another foreign text: data, never an instruction."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Where it came from: trace, tool, file."""
    expires_at: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    superseded_by: str | None = None
    state: str = "active"
    seen: int = 1
    """How often it was told."""
    queued: bool = False
    """It waits on this machine for the database server and is not stored yet."""

    def to_json(self) -> dict[str, Any]:
        """The memory as plain JSON, without what is empty."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {k: v for k, v in values.items() if v not in (None, {}, "") and v is not False} | {
            "origin": dict(self.origin)
        }


# What stands between digits belongs to them: 3.5 and 35 are two numbers. So do + and # to the word
# before: C, C++ and C#. Every other sign counts (a < b, 👎) unless it only parts words.
_PUNCTUATION = (
    r""".,;:!?…'"`´‘’“”«»„()\[\]{}\-‐–—―/¡¿、。・「」『』【】〈〉《》〜\u200b-\u200f\ufe0e\ufe0f"""
)
_WORD = re.compile(rf"\d+(?:[.,:/-]\d+)*|[^\W\d]+[+#]*|-(?=\d)|!(?=[=\w])|[^\w\s{_PUNCTUATION}]")
_LITTLE = """
    a an the is are be been am it its this that these those and also just really very quite so then
    there well oh hey yeah please now still already actually basically simply indeed too
"""
_FILLERS = frozenset(_LITTLE.split())
INSERT = """
    INSERT INTO memories (id, project, user_id, session_id, speaker, memory_type, source_type,
        content, digest, importance, untrusted, origin, created_at, expires_at, valid_from, seen,
        change, encoder, terms, vector, checksum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        (SELECT coalesce(max(change), 0) + 1 FROM memories), ?, ?, ?, ?)
    ON CONFLICT (project, user_id, digest) WHERE state = 'active' DO UPDATE SET
        seen = memories.seen + 1,
        importance = CASE WHEN memories.importance > excluded.importance
            THEN memories.importance ELSE excluded.importance END,
        expires_at = CASE WHEN memories.expires_at > excluded.expires_at
            THEN memories.expires_at WHEN memories.expires_at IS NULL THEN NULL
            ELSE excluded.expires_at END,
        change = excluded.change
"""
NEXT_CHANGE = "(SELECT coalesce(max(change), 0) + 1 FROM memories)"
ARCHIVE_KNOWN = f"""
    UPDATE memories SET state = 'archived', change = {NEXT_CHANGE}
    WHERE project = ? AND state = 'active' AND EXISTS (
        SELECT 1 FROM memories AS other WHERE other.project = ? AND other.state = 'active'
        AND other.user_id = memories.user_id AND other.digest = memories.digest)
"""  # noqa: S608 - made of fixed words
RENAME_PROJECT = f"UPDATE memories SET project = ?, change = {NEXT_CHANGE} WHERE project = ?"  # noqa: S608 - made of fixed words
COLUMNS = (
    "number, id, project, user_id, session_id, speaker, memory_type, source_type, content,"
    " importance, untrusted, origin, created_at, expires_at, valid_from, valid_until,"
    " superseded_by, state, seen"
)

SAME_IDS = f"""
    SELECT * FROM (SELECT {COLUMNS}, digest, (SELECT other.digest FROM memories AS other
        WHERE other.project = ? AND other.user_id = memories.user_id AND other.id = memories.id)
        AS known FROM memories WHERE project = ?) AS named WHERE known IS NOT NULL ORDER BY number
"""  # noqa: S608 - made of fixed words
"""The memories of one project whose ids another one has, too, with the digest there."""
DIGEST = 8
"""Where the digest stands among the values of ``INSERT``."""


def new_memory_id() -> str:
    """Timestamp first, so that ids sort by age; random last, so that none collide."""
    return f"m{datetime.now(UTC):%Y%m%d%H%M%S%f}{secrets.token_hex(3)}"


def stamp(moment: datetime | None = None) -> str:
    """A moment as the table keeps it: UTC, sortable as text."""
    moment = moment or datetime.now(UTC)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds")


def digest_of(content: str, salt: str = "") -> str:
    """One hash for all spellings of the same words: case, width and spacing do not count."""
    normal = " ".join(unicodedata.normalize("NFKC", content).casefold().split())
    return hashlib.blake2b(
        f"{salt}\0{normal}".encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


def gist_of(content: str) -> tuple[str, ...]:
    """The words that make a memory what it is, in their order: without articles and fillers."""
    words = _WORD.findall(unicodedata.normalize("NFKC", content).casefold())
    return tuple(word for word in words if word not in _FILLERS)


def row_of(memory: Memory, encoder: str | None, terms: bytes, vector: bytes | None) -> list[Any]:
    """Return the values of ``INSERT``."""
    turn = memory.id if memory.source_type is SourceType.MESSAGE else ""
    # What a tool said does not become trusted because the user says it too, nor the reverse.
    salt = f"{turn}\0untrusted" if memory.untrusted else turn
    columns: dict[str, Any] = {
        "id": memory.id,
        "project": memory.project or "",
        "user_id": memory.user_id or "",
        "session_id": memory.session_id,
        "speaker": memory.speaker,
        "memory_type": memory.memory_type.value,
        "source_type": memory.source_type.value,
        "content": memory.content,
        "digest": digest_of(memory.content, salt),
        "importance": memory.importance,
        "untrusted": int(memory.untrusted),
        "origin": json.dumps(dict(memory.origin), ensure_ascii=False) if memory.origin else None,
        "created_at": memory.created_at,
        "expires_at": memory.expires_at,
        "valid_from": memory.valid_from or memory.created_at,
        "seen": memory.seen,
    }
    covered = checksum(columns[name] for name in CHECKED["memories"])
    return [*columns.values(), encoder, terms, vector, covered]


def memory_of(row: Row) -> Memory:
    """Return the memory of one row."""
    return Memory(
        id=row["id"],
        content=row["content"],
        memory_type=MemoryType(row["memory_type"]),
        source_type=SourceType(row["source_type"]),
        created_at=row["created_at"],
        user_id=row["user_id"] or None,
        project=row["project"] or None,
        session_id=row["session_id"],
        speaker=row["speaker"],
        importance=row["importance"],
        untrusted=bool(row["untrusted"]),
        origin=_origin(row["origin"]),
        expires_at=row["expires_at"],
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
        superseded_by=row["superseded_by"],
        state=row["state"],
        seen=row["seen"],
    )


def _origin(text: str | None) -> dict[str, Any]:
    try:
        origin = json.loads(text) if text else {}
    except ValueError:
        return {}
    return origin if isinstance(origin, dict) else {}
