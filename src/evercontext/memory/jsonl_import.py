"""Read memories from JSON lines: those of an export, and turns of other conversations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.errors import UsageError
from evercontext.memory.date_phrases import parse_moment
from evercontext.memory.memory_store import LONGEST
from evercontext.memory.memory_table import Memory, new_memory_id, stamp

_NAMED = 20
"""Lines that are named; of more, their number."""
LONGEST_LINE = 4_000_000
"""Bytes of a line; one that never ends must not fill the memory of the machine."""


def read_memories(file: BinaryIO, project: str, user: str | None) -> Iterator[Memory]:
    """Yield the memory of each line; a line that is none is named by its number.

    Lines whose time cannot be read are left out, and all of them are named at the end.
    """
    number, undated = 0, list[str]()
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError(f"it is longer than {LONGEST_LINE:,} bytes")
            memory = _memory(line, project, user)
        except _NoMoment as problem:
            undated.append(f"{number} ({problem})")
            continue
        except (ValueError, TypeError, RecursionError) as problem:
            raise UsageError(
                f"line {number} is no memory: {problem}; the lines before it are taken in",
                fix='One JSON object per line: {"id": …, "content": …}',
            ) from None
        if memory is not None:
            yield memory
    if undated:
        more = f" and {len(undated) - _NAMED} more" if len(undated) > _NAMED else ""
        raise UsageError(
            f"left out, as their created_at cannot be read: line {', '.join(undated[:_NAMED])}"
            f"{more}; all other lines are taken in",
            fix="Write 2023-05-08T13:56+09:00, 2023/05/08 13:56, 2023年5月8日 or an epoch",
        )


def _memory(line: bytes, project: str, user: str | None) -> Memory | None:
    text = line.decode("utf-8-sig").strip()
    if not text:
        return None
    fields = json.loads(text)
    if not isinstance(fields, dict) or not isinstance(fields.get("content"), str):
        raise ValueError("it is no object with a text as its content")
    if len(fields["content"]) > LONGEST:
        raise ValueError(f"its content is longer than {LONGEST:,} characters")
    # A turn without words, such as a picture alone, cannot be found by any.
    return _built(fields, project, user) if fields["content"].strip() else None


def _built(fields: Mapping[str, Any], project: str, user: str | None) -> Memory:
    session = fields.get("session", fields.get("session_id"))
    speaker = fields.get("speaker")
    source = SourceType(fields.get("source_type", "message"))
    origin = fields.get("origin")
    expires = fields.get("expires_at")
    return Memory(
        id=str(fields.get("id") or new_memory_id()),
        content=fields["content"],
        memory_type=MemoryType(fields.get("memory_type", "longterm")),
        source_type=source,
        created_at=stamp(_created(fields.get("created_at"))),
        user_id=user,
        project=project,
        session_id=None if session is None else str(session),
        speaker=None if speaker is None else str(speaker),
        importance=_between(fields.get("importance", 0.5)),
        untrusted=bool(fields.get("untrusted")) or source is SourceType.TOOL,
        origin=origin if isinstance(origin, dict) else {},
        expires_at=None if expires is None else stamp(_needed(expires)),
        seen=max(1, int(fields.get("seen", 1))),
    )


class _NoMoment(ValueError):
    """What was written as a time."""


def _created(value: object) -> datetime:
    return datetime.now(UTC) if value in (None, "") else _moment(value)


def _moment(value: object) -> datetime:
    moment = None if isinstance(value, bool) else parse_moment(str(value))
    if moment is None:
        raise _NoMoment(repr(value)[:40])
    return moment


def _needed(value: object) -> datetime:
    try:
        return _moment(value)
    except _NoMoment as problem:
        raise ValueError(f"expires_at is no moment: {problem}") from None


def _between(value: object) -> float:
    number = float(value) if isinstance(value, int | float) else math.nan
    if math.isnan(number):
        raise ValueError("importance is no number")
    return min(1.0, max(0.0, number))
