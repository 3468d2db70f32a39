"""A session that waits for the server, as its rows would be: for reading it meanwhile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evercontext.memory.arrivals import LOCAL
from evercontext.storage.store import Row


def session_in(entries: Sequence[Row]) -> Row | None:
    """The session's row with every change since; ``None`` if the server knows how it began."""
    begun = next((entry for entry in entries if entry["kind"] == "session"), None)
    if begun is None:
        return None
    row: dict[str, Any] = {"ended_at": None, "title": None, **json.loads(begun["body"])}
    for entry in entries:
        if entry["kind"] == "change":
            _change(row, json.loads(entry["body"]))
    said = messages_in(entries)
    last = said[-1]["timestamp"] if said else None
    return row | {
        "metadata": json.dumps(row["metadata"]),
        "messages": len(said),
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
