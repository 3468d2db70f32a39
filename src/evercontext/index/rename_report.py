"""Report renames that the index recognised, checked against what a search finds afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from evercontext.domain.event import Renamed
from evercontext.events.log import EventLog
from evercontext.index.chunk_table import ChunkTable

OnRenamed = Callable[[str, str, bool], None]
"""Called with the old path, the new one, and whether only the new one is found now."""


async def tell_renames(
    pairs: Iterable[tuple[str, str]], table: ChunkTable, tell: OnRenamed | None
) -> None:
    """Ask the table about each pair and say what it answers."""
    for old, new in pairs if tell else ():
        is_found = await table.row(new) is not None and await table.row(old) is None
        if tell:
            tell(old, new, is_found)


def into_log(events: EventLog) -> OnRenamed:
    """Write renames down, each under a trace of its own."""

    def tell(old: str, new: str, is_found: bool) -> None:
        body = Renamed(old=old, new=new, found_only_under_new_path=is_found)
        events.emit(body, trace_id=str(uuid.uuid4()))

    return tell
