from __future__ import annotations

import pytest

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.server.openapi import ROUTES, openapi_document


async def _read_file(arguments: Arguments, caller: Caller) -> ToolResult:
    return ToolResult(str(arguments["path"]))


ARGUMENTS = {
    "type": "object",
    "required": ["path"],
    "properties": {"path": {"type": "string"}},
    "additionalProperties": False,
}


@pytest.mark.contract("E10")
def test_a_route_is_declared_with_its_tool() -> None:
    route = next(route for route in ROUTES if route.path == "/read_file")
    tool = Tool("read_file", "Read a file.", ARGUMENTS, Effect.READ, _read_file)
    operation = openapi_document([(route, tool)])["paths"]["/read_file"]["post"]
    assert operation["summary"] == "Read File"
    assert operation["description"] == "Read a file."
    assert operation["operationId"] == "read_file_read_file_post"
    assert operation["requestBody"] == {
        "required": True,
        "content": {"application/json": {"schema": ARGUMENTS}},
    }
    success = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert success["required"] == ["content"]
    failure = operation["responses"]["404"]["content"]["application/json"]["schema"]
    assert failure["required"] == ["error", "detail", "trace_id"]


def test_only_routes_with_a_tool_are_declared() -> None:
    document = openapi_document([])
    assert list(document["paths"]) == ["/healthz", "/metrics"]
    assert document["paths"]["/metrics"]["get"]["operationId"] == "figures_metrics_get"
    assert document["openapi"] == "3.1.0"
