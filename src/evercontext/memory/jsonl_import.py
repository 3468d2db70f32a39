"""Reading memories from JSON lines: those an export made, and turns of other conversations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

from evercontext.domain.memory import MemoryType, SourceType
from evercontext.errors import UsageError
from evercontext.memory.date_phrases import parse_moment
from evercontext.memory.memory_table import Memory, new_memory_id, stamp
from evercontext.memory.store import LONGEST

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
    given = json.loads(text)
    if not isinstance(given, dict) or not isinstance(given.get("content"), str):
        raise ValueError("it is no object with a text as its content")
    if len(given["content"]) > LONGEST:
        raise ValueError(f"its content is longer than {LONGEST:,} characters")
    # A turn without words, such as a picture alone, cannot be found by any.
    return _built(given, project, user) if given["content"].strip() else None


def _built(given: Mapping[str, Any], project: str, user: str | None) -> Memory:
    session = given.get("session", given.get("session_id"))
    speaker = given.get("speaker")
    source = SourceType(given.get("source_type", "message"))
    origin = given.get("origin")
    expires = given.get("expires_at")
    return Memory(
        id=str(given.get("id") or new_memory_id()),
        content=given["content"],
        memory_type=MemoryType(given.get("memory_type", "longterm")),
        source_type=source,
        created_at=stamp(_created(given.get("created_at"))),
        user_id=user,
        project=project,
        session_id=None if session is None else str(session),
        speaker=None if speaker is None else str(speaker),
        importance=_between(given.get("importance", 0.5)),
        untrusted=bool(given.get("untrusted")) or source is SourceType.TOOL,
        origin=origin if isinstance(origin, dict) else {},
        expires_at=None if expires is None else stamp(_needed(expires)),
        seen=max(1, int(given.get("seen", 1))),
    )


class _NoMoment(ValueError):
    """What was written as a time."""


def _created(given: object) -> datetime:
    return datetime.now(UTC) if given in (None, "") else _moment(given)


def _moment(given: object) -> datetime:
    moment = None if isinstance(given, bool) else parse_moment(str(given))
    if moment is None:
        raise _NoMoment(repr(given)[:40])
    return moment


def _needed(given: object) -> datetime:
    try:
        return _moment(given)
    except _NoMoment as problem:
        raise ValueError(f"expires_at is no moment: {problem}") from None


def _between(given: object) -> float:
    number = float(given) if isinstance(given, int | float) else math.nan
    if math.isnan(number):
        raise ValueError("importance is no number")
    return min(1.0, max(0.0, number))
