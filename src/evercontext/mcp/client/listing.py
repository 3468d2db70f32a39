"""List what a server has, page by page, with a limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from evercontext.errors import ServerTimeout
from evercontext.mcp.client.exchange import McpConnection

MOST_ITEMS = 1_000
"""Entries of one list that are taken."""
_MOST_PAGES = 100
_MOST_SECONDS = 3_600.0
_FIELD = {"resources/templates": "resourceTemplates"}


@dataclass(slots=True)
class Listed:
    """The entries of a list, as the server sent them."""

    items: list[Any] = field(default_factory=list)
    endless: bool = False
    seconds: float = 0.0
    """How long the server says the list holds; 0: it did not say."""


async def list_all(connection: McpConnection, what: str, seconds: float) -> Listed:
    """List ``tools``, ``resources``, ``resources/templates`` or ``prompts``."""
    listed = Listed()
    try:
        async with asyncio.timeout(seconds):
            await _pages(connection, what, seconds, listed)
    except TimeoutError:
        raise ServerTimeout(f"it did not list its {what} in time") from None
    return listed


async def _pages(connection: McpConnection, what: str, seconds: float, listed: Listed) -> None:
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        params = {"cursor": cursor} if cursor else {}
        page = (await connection.request(f"{what}/list", params, seconds)).value
        page = page if isinstance(page, dict) else {}
        items = page.get(_FIELD.get(what, what))
        listed.items += items if isinstance(items, list) else []
        listed.seconds = _ttl(page)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(listed.items) > MOST_ITEMS:
            return
        if cursor in seen:
            break
        seen.add(cursor)
    listed.endless = True


def _ttl(page: dict[str, Any]) -> float:
    ms = page.get("ttlMs")
    plain = isinstance(ms, int) and not isinstance(ms, bool) and ms > 0
    return min(ms / 1000, _MOST_SECONDS) if plain else 0.0  # type: ignore[operator]
