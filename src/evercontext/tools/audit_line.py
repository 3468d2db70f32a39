"""Build the audit line of one call (E25): caller, path, size and result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evercontext.domain.error_codes import http_status
from evercontext.domain.event import Audit
from evercontext.domain.tool import Caller, CommandAccess, Door, ToolResult
from evercontext.domain.visible_text import escaped_line

_REQUESTED = frozenset({Door.REST, Door.MCP})
"""Entrances where a request has one line, whatever it calls: their server writes it."""


def writes_own_line(caller: Caller) -> bool:
    """True if nobody but the toolbox can write the line of this caller's calls."""
    return caller.door not in _REQUESTED


def content_size(values: Any) -> int:
    """Return how many bytes of file content a call carries, either way."""
    content = values.get("content") if isinstance(values, Mapping) else None
    return len(content.encode("utf-8", "surrogatepass")) if isinstance(content, str) else 0


def line_of(
    name: str, arguments: Any, result: ToolResult, caller: Caller, duration: int | None = None
) -> Audit:
    """The line of one call, without content."""
    path = arguments.get("path") if isinstance(arguments, Mapping) else None
    return Audit(
        method=escaped_line(name, 128),
        path=escaped_line(path, 1024) if isinstance(path, str) else "",
        size=content_size(arguments) or content_size(result.data),
        status=http_status(result.error) if result.error else 200,
        door=caller.door,
        principal=caller.principal.token,
        duration_ms=duration,
        access=None if caller.access is CommandAccess.SANDBOX else caller.access.value,
    )
