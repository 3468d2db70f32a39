"""Convert the reply of a vendor's program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evercontext.domain.model import Usage


@dataclass(frozen=True, slots=True)
class VendorReply:
    """The content of a program's output."""

    text: str | None = None
    thought: str = ""
    usage: Usage = Usage()
    error: str | None = None
    status: int | None = None
    """The HTTP status behind the error, where one is known."""
    limited: bool = False
    """The account's limit is used up."""


def events(output: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects among the lines of an output."""
    for line in output.splitlines():
        if (event := event_of(line)) is not None:
            yield event


def event_of(line: str) -> dict[str, Any] | None:
    """Return the JSON object that a line is, or None."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def table(value: Any) -> Mapping[str, Any]:
    """Return a JSON object as a mapping, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def number(value: Any) -> int:
    """Return a count, 0 for anything that is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
