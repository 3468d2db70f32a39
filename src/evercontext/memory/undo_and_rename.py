"""Update memories after the fact: work that was undone, a project that was renamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from evercontext.errors import DiskFull, StoreGone, StoreProblem, UsageError
from evercontext.memory.memory_table import (
    ARCHIVE_KNOWN,
    COLUMNS,
    DIGEST,
    NEXT_CHANGE,
    RENAME_PROJECT,
    SAME_IDS,
    Memory,
    memory_of,
    new_memory_id,
    row_of,
)
from evercontext.memory.outbox_delivery import supersede
from evercontext.storage.store import Queries, Row, Store

UNDONE = "undone"
"""In the origin of a memory that was put away with the work it tells of: what it had replaced."""


Failed = Callable[[str, StoreProblem | DiskFull], None]
"""Told the earlier name whose memories could not be carried over, and why."""


async def carry_over(store: Store, names: Mapping[str, str], failed: Failed | None = None) -> int:
    """Give the memories of projects that are called otherwise now their present names.

    ``names``: the present one of each earlier one. What both know is kept once. A name that cannot
    be carried over does not stop the others.
    """
    earlier = [old for old, new in names.items() if old and old != new]
    if not earlier:
        return 0
    marks = ", ".join("?" * len(earlier))
    rows = await store.fetch_all(
        f"SELECT DISTINCT project FROM memories WHERE project IN ({marks})",  # noqa: S608 - made of fixed words
        earlier,
    )
    moved = 0
    for old in (str(row["project"]) for row in rows):
        try:
            async with store.transaction() as writing:
                await writing.execute(ARCHIVE_KNOWN, (old, names[old]))
                for row in await writing.fetch_all(SAME_IDS, (names[old], old)):
                    await _make_room(writing, row)
                moved += await writing.execute(RENAME_PROJECT, (names[old], old))
        except StoreGone:
            raise
        except (StoreProblem, DiskFull) as problem:
            if failed is None:
                raise
            failed(old, problem)
    return moved


async def _make_room(writing: Queries, row: Row) -> None:
    """Drop a memory whose id the new name has for the same words, or give it another id."""
    if row["digest"] == row["known"] and row["state"] != "active":
        await writing.execute("DELETE FROM memories WHERE number = ?", (row["number"],))
        return
    memory = replace(memory_of(row), id=new_memory_id())
    values = row_of(memory, None, b"", None)
    # A turn's digest holds its id, and so does the checksum.
    digest = values[DIGEST] if row["state"] != "forgotten" else row["digest"]
    await writing.execute(
        "UPDATE memories SET id = ?, digest = ?, checksum = ? WHERE number = ?",
        (memory.id, digest, values[-1], row["number"]),
    )
    await writing.execute(
        "UPDATE memories SET superseded_by = ? WHERE project = ? AND superseded_by = ?",
        (memory.id, row["project"], row["id"]),
    )


async def follow_undo(store: Store, taken_back: Mapping[str, bool], project: str) -> int:
    """Put away what was remembered of tasks that are taken back, and bring back the others'.

    Return how many memories changed. What such a memory had replaced is valid again meanwhile.
    """
    rows = await store.fetch_all(
        f"SELECT {COLUMNS} FROM memories WHERE project = ? AND origin LIKE ?"  # noqa: S608 - made of fixed words
        " AND state IN ('active', 'archived') ORDER BY number",
        (project, '%"trace_id"%'),
    )
    changed = 0
    for memory in map(memory_of, rows):
        gone = taken_back.get(str(memory.origin.get("trace_id")))
        if gone and memory.state == "active":
            changed += await _put_away(store, memory)
        elif gone is False and memory.state == "archived" and UNDONE in memory.origin:
            changed += await _bring_back(store, memory)
    return changed


async def _put_away(store: Store, memory: Memory) -> int:
    async with store.transaction() as writing:
        older = await writing.fetch_all(
            "SELECT id FROM memories WHERE project = ? AND superseded_by = ?"
            " AND state = 'superseded'",
            (memory.project or "", memory.id),
        )
        ids = [str(row["id"]) for row in older]
        changed = await writing.execute(
            f"UPDATE memories SET state = 'archived', origin = ?, change = {NEXT_CHANGE}"  # noqa: S608 - made of fixed words
            " WHERE id = ? AND project = ? AND state = 'active'",
            (_json({**memory.origin, UNDONE: ids}), memory.id, memory.project or ""),
        )
        for id in ids:
            await writing.execute(
                f"UPDATE memories SET state = 'active', valid_until = NULL,"  # noqa: S608 - made of fixed words
                f" superseded_by = NULL, change = {NEXT_CHANGE}"
                " WHERE id = ? AND project = ? AND state = 'superseded'",
                (id, memory.project or ""),
            )
    return changed


async def _bring_back(store: Store, memory: Memory) -> int:
    origin = {key: value for key, value in memory.origin.items() if key != UNDONE}
    async with store.transaction() as writing:
        for id in memory.origin[UNDONE]:
            # What was changed by hand meanwhile stays as it is.
            with suppress(UsageError):
                await supersede(writing, id, memory)
        # The same words may have been told again since: once is enough.
        return await writing.execute(
            f"UPDATE memories SET state = 'active', origin = ?, change = {NEXT_CHANGE}"  # noqa: S608 - made of fixed words
            " WHERE id = ? AND project = ? AND state = 'archived' AND NOT EXISTS"
            " (SELECT 1 FROM memories AS other WHERE other.project = memories.project"
            " AND other.user_id = memories.user_id AND other.digest = memories.digest"
            " AND other.state = 'active')",
            (_json(origin), memory.id, memory.project or ""),
        )


def _json(origin: Mapping[str, Any]) -> str:
    return json.dumps(dict(origin), ensure_ascii=False)
