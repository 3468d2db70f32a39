"""Search: the project's code, on the same road as every other caller."""

from __future__ import annotations

from typing import Any

from evercontext.domain.tool import Caller, Door
from evercontext.server.console.request import Ask, Route


async def search(ask: Ask) -> dict[str, Any]:
    """Answer ``GET search``: ranked chunks, each with the reasons for its place."""
    query = ask.query.get("q", "").strip()
    if not query:
        return {"query": "", "chunks": [], "stale": False}
    arguments: dict[str, Any] = {"query": query, "top_k": max(1, ask.number("k", 10, 50))}
    if prefix := ask.query.get("prefix", "").strip():
        arguments["filters"] = {"path_prefix": prefix}
    caller = Caller(ask.trace_id, Door.REST, principal=ask.app.principal)
    result = await ask.app.toolbox.call("search_code", arguments, caller)
    if result.error:
        raise result.error
    return {"query": query, **(result.data or {})}


ROUTES = (Route("GET", "search", search),)
