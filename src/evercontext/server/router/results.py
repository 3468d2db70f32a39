"""Encode what the tool router answers: entries of lists, results of calls, and audit lines."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

from evercontext.catalog.call_results import without_second_copy
from evercontext.catalog.discovery_tools import DISCOVERY, EXECUTE
from evercontext.catalog.tool_entry import CatalogEntry, definition_of
from evercontext.domain.error_codes import http_status
from evercontext.domain.event import Audit
from evercontext.domain.tool import Door, Tool, ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import UnknownTool
from evercontext.mcp.messages import Id, RpcRequest
from evercontext.server.responses import encode
from evercontext.server.router.authentication import RouterClient

DATA_KEY = "evercontext/data"
"""Under which ``_meta`` has the data behind a text of one of our own tools."""
LARGEST_DATA = 4_000
"""Characters of such data that are sent: what is longer, as a file, is in the text itself."""
_TITLES = {DISCOVERY: "Find tools", EXECUTE: "Call a tool"}
_HINTS = {
    DISCOVERY: {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    EXECUTE: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}


def direct_name(entry: CatalogEntry) -> str:
    """Return a tool's name in a complete list; vendors behind clients refuse dots and colons."""
    return _in_list(entry.key)


def direct_prefix(server: str) -> str:
    """Return what the names of a server's tools begin with in a complete list."""
    return _in_list(f"{server}:")


def _in_list(key: str) -> str:
    return key.replace(":", "__").replace(".", "_")[:128]


def list_entry(name: str, entry: CatalogEntry) -> dict[str, Any]:
    """Return a tool as a complete list shows it: as its server defined it, under its name here."""
    definition = definition_of(entry)
    return {**definition, "name": name, "inputSchema": {"type": "object", **entry.schema}}


def own_list_entry(tool: Tool) -> dict[str, Any]:
    """Return one of the two tools; without hints and a title, some clients refuse to call it."""
    return {
        "name": tool.name,
        "title": _TITLES[tool.name],
        "description": tool.description,
        "inputSchema": {"type": "object", **tool.arguments},
        "annotations": _HINTS[tool.name],
    }


def encode_call(
    id: Id, result: ToolResult, trace_id: str, *, stateless: bool, direct: bool
) -> bytes:
    """Return the whole response to a call; a server's own answer goes into it unchanged.

    Only where no output schema promises it (``direct``: the tool was called by its own name),
    structured content that repeats the text is left out.
    """
    if result.raw is not None:
        answer: dict[str, Any] = result.data["result"]
        once = answer if direct else without_second_copy(answer)
        raw = result.raw if once is answer else encode(once).decode()
        if stateless and "resultType" not in answer:
            raw = f'{{"resultType":"complete",{raw[1:]}' if answer else '{"resultType":"complete"}'
        return _response(id, raw)
    kind = '"resultType":"complete",' if stateless else ""
    if result.error is None:
        content = f'"content":[{{"type":"text","text":{encode_basestring(result.text)}}}]'
        return _response(id, f'{{{kind}{content}{_data_for_programs(result)},"isError":false}}')
    text = f"{result.error.code}: {result.error}"
    error = {"code": result.error.code, "message": str(result.error)}
    problem = {"error": error, "status": http_status(result.error), "trace_id": trace_id}
    content = f'"content":[{{"type":"text","text":{encode_basestring(text)}}}]'
    structured = f'"structuredContent":{json.dumps(problem)}'
    return _response(id, f'{{{kind}{content},{structured},"isError":true}}')


def _data_for_programs(result: ToolResult) -> str:
    """Return what a program needs of our own tools' data, where no model reads it."""
    data = result.data.get("result") if isinstance(result.data, dict) else None
    encoded = encode(data).decode("utf-8", "replace") if isinstance(data, dict) else ""
    if not encoded or len(encoded) > LARGEST_DATA:
        return ""
    return f',"_meta":{{"{DATA_KEY}":{encoded}}}'


def _response(id: Id, result: str) -> bytes:
    response = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{result}}}'
    return response.encode("utf-8", "backslashreplace")


def audit_line(
    request: RpcRequest, method: str, key: Any, client: RouterClient, result: ToolResult, ms: int
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
