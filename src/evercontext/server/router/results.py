"""Encode what the tool router answers: entries of lists, results of calls, and audit lines."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

from evercontext.catalog.entry import CatalogEntry
from evercontext.catalog.servers import asks_for_input
from evercontext.domain.error_codes import http_status
from evercontext.domain.event import Audit
from evercontext.domain.tool import Door, Tool, ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import UnknownTool
from evercontext.mcp.messages import Id, Request
from evercontext.server.responses import encode
from evercontext.server.router.authentication import RouterClient


def direct_name(entry: CatalogEntry) -> str:
    """Return a tool's name in a complete list; vendors behind clients refuse dots and colons."""
    return entry.key.replace(":", "__").replace(".", "_")[:128]


def list_entry(name: str, tool: Tool | CatalogEntry) -> dict[str, Any]:
    """Return a tool as a list shows it."""
    schema = tool.arguments if isinstance(tool, Tool) else tool.schema
    schema = {"type": "object", **schema}
    return {"name": name, "description": tool.description, "inputSchema": schema}


def encode_call(id: Id, result: ToolResult, trace_id: str, stateless: bool) -> bytes:
    """Return the whole response to a call; a server's own JSON goes into it unchanged."""
    if result.error is not None:
        error = {"code": result.error.code, "message": str(result.error)}
        problem = {"error": error, "status": http_status(result.error), "trace_id": trace_id}
        text, data = f"{result.error.code}: {result.error}", json.dumps(problem)
    else:
        text = result.text
        data = result.raw if result.raw is not None else encode(result.data).decode()
    if result.error is None and result.raw is not None and asks_for_input(result.data["result"]):
        return _response(id, result.raw[len('{"result":') : -1])
    kind = '"resultType":"complete",' if stateless else ""
    content = f'"content":[{{"type":"text","text":{encode_basestring(text)}}}]'
    failed = "false" if result.error is None else "true"
    return _response(id, f'{{{kind}{content},"structuredContent":{data},"isError":{failed}}}')


def _response(id: Id, result: str) -> bytes:
    response = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{result}}}'
    return response.encode("utf-8", "backslashreplace")


def audit_line(
    request: Request, method: str, key: Any, client: RouterClient, result: ToolResult, ms: int
) -> Audit:
    """Return the audit line of a request: who, what, which server, how long."""
    key = key if isinstance(key, str) else ""
    server = key.removeprefix("evercontext://").partition("/")[0].partition(":")[0]
    return Audit(
        method=method,
        path=escaped_line(key, 256),
        size=len(result.text),
        status=http_status(result.error) if result.error else 200,
        door=Door.MCP,
        principal=client.token,
        request_id=escaped_line(str(request.id), 64),
        server=server if key and not isinstance(result.error, UnknownTool) else None,
        duration_ms=ms,
    )
