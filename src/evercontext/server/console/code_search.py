"""Search the project's code, through the toolbox like every other caller."""

from __future__ import annotations

from typing import Any

from evercontext.domain.tool import Caller, Door
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute


async def search(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET search``: ranked chunks, each with the reasons for its place."""
    query = request.query.get("q", "").strip()
    if not query:
        return {"query": "", "chunks": [], "stale": False}
    arguments: dict[str, Any] = {"query": query, "top_k": max(1, request.number("k", 10, 50))}
    if prefix := request.query.get("prefix", "").strip():
        arguments["filters"] = {"path_prefix": prefix}
    caller = Caller(request.trace_id, Door.REST, principal=request.app.principal)
    result = await request.app.toolbox.call("search_code", arguments, caller)
    if result.error:
        raise result.error
    return {"query": query, **(result.data or {})}


ROUTES = (ConsoleRoute("GET", "search", search),)
