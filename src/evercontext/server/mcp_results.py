"""Our tools and their results in the words of MCP, as plain JSON."""

from __future__ import annotations

from typing import Any

from evercontext.domain.error_codes import http_status
from evercontext.domain.tool import Effect, Tool, ToolResult
from evercontext.server.responses import encode


def tool_definition(tool: Tool) -> dict[str, Any]:
    """Return a tool as MCP lists it; vendors behind the clients refuse dots in names."""
    writes = tool.writes
    return {
        "name": tool.name.replace(".", "__"),
        "title": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.arguments),
        "annotations": {
            "readOnlyHint": not writes,
            "destructiveHint": writes,
            "idempotentHint": not writes,
            "openWorldHint": bool(tool.effects & Effect.NETWORK),
        },
    }


def call_result(result: ToolResult, trace_id: str) -> dict[str, Any]:
    """Return a result as MCP content; an error carries the code that REST would give."""
    if result.error is None:
        data = result.data if isinstance(result.data, dict) else {"result": result.data}
        text = result.text or encode(data).decode()
        # Some clients show a model structured content instead of the text, as escaped JSON.
        structured = {} if list(data.values()) == [text] else {"structuredContent": data}
        return {"content": [_text(text)], **structured, "isError": False}
    problem = {
        "error": {"code": result.error.code, "message": str(result.error)},
        "status": http_status(result.error),
        "trace_id": trace_id,
    }
    text = f"{result.error.code}: {result.error}"
    return {"content": [_text(text)], "structuredContent": problem, "isError": True}


def _text(text: str) -> dict[str, Any]:
    # JSON-RPC is UTF-8: a lone surrogate could not be sent at all.
    return {"type": "text", "text": text.encode("utf-8", "backslashreplace").decode()}
