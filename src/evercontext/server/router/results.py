"""What the tool router answers: tools as lists show them, results, and the line of the audit."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

from evercontext.catalog.entry import Card
from evercontext.catalog.servers import asks_for_input
from evercontext.domain.error_codes import http_status
from evercontext.domain.event import Audit
from evercontext.domain.tool import Door, Tool, ToolResult
from evercontext.errors import UnknownTool
from evercontext.mcp import json_rpc, revisions
from evercontext.server.responses import encode
from evercontext.server.router.authentication import Visitor
from evercontext.tools.audit_line import printable


def direct_name(card: Card) -> str:
    """The name of a tool in a whole list; vendors behind the clients refuse dots and colons."""
    return card.key.replace(":", "__").replace(".", "_")[:128]


def shown(name: str, tool: Tool | Card) -> dict[str, Any]:
    """A tool as a list shows it."""
    schema = tool.arguments if isinstance(tool, Tool) else tool.schema
    shape = {"type": "object", **schema}
    return {"name": name, "description": tool.description, "inputSchema": shape}


def whole(call: json_rpc.Call, result: dict[str, Any] | bytes, stateless: bool) -> bytes:
    """Return the whole answer to a question; bytes are one already."""
    if isinstance(result, bytes):
        return result
    shaped = revisions.completed(call.method, result) if stateless else result
    return encode({"jsonrpc": "2.0", "id": call.id, "result": shaped})


def as_mcp(id: json_rpc.Id, result: ToolResult, trace_id: str, stateless: bool) -> bytes:
    """Return the whole answer to a call; a server's own JSON goes into it as it stands."""
    if result.error is not None:
        told = {"code": result.error.code, "message": str(result.error)}
        problem = {"error": told, "status": http_status(result.error), "trace_id": trace_id}
        text, data = f"{result.error.code}: {result.error}", json.dumps(problem)
    else:
        text = result.text
        data = result.raw if result.raw is not None else encode(result.data).decode()
    if result.error is None and result.raw is not None and asks_for_input(result.data["result"]):
        return _whole(id, result.raw[len('{"result":') : -1])
    kind = '"resultType":"complete",' if stateless else ""
    content = f'"content":[{{"type":"text","text":{encode_basestring(text)}}}]'
    failed = "false" if result.error is None else "true"
    return _whole(id, f'{{{kind}{content},"structuredContent":{data},"isError":{failed}}}')


def _whole(id: json_rpc.Id, result: str) -> bytes:
    answer = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{result}}}'
    return answer.encode("utf-8", "backslashreplace")


def line_of(
    call: json_rpc.Call, name: str, what: Any, visitor: Visitor, result: ToolResult, spent: int
) -> Audit:
    """The line of the audit for one question: who, what, which server, how long."""
    key = what if isinstance(what, str) else ""
    server = key.removeprefix("evercontext://").partition("/")[0].partition(":")[0]
    return Audit(
        method=name,
        path=printable(key, 256),
        size=len(result.text),
        status=http_status(result.error) if result.error else 200,
        door=Door.MCP,
        principal=visitor.token,
        request_id=printable(str(call.id), 64),
        server=server if key and not isinstance(result.error, UnknownTool) else None,
        duration_ms=spent,
    )
