"""Our tools and their results in the words of MCP."""

from __future__ import annotations

from typing import Any

from evercontext.domain.tool import Caller, Effect, Tool, ToolResult
from evercontext.errors import NotFound
from evercontext.server.mcp_results import call_result, tool_definition


async def _run(arguments: Any, caller: Caller) -> ToolResult:
    return ToolResult("")


def test_a_tool_has_a_name_that_vendors_take_and_hints() -> None:
    fetch = Tool("run.http", "Fetch.", {"type": "object"}, Effect.READ | Effect.NETWORK, _run)
    shown = tool_definition(fetch)
    assert (shown["name"], shown["title"]) == ("run__http", "run.http")
    assert shown["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
    }


def test_results_and_errors_are_content_with_the_same_in_data() -> None:
    done = call_result(ToolResult("text \ud800", data=[1]), "t")
    assert done["content"] == [{"type": "text", "text": "text \\ud800"}]
    assert (done["structuredContent"], done["isError"]) == ({"result": [1]}, False)
    failed = call_result(ToolResult.failed(NotFound("none here")), "t")
    assert (failed["isError"], failed["structuredContent"]["status"]) == (True, 404)
    assert failed["structuredContent"]["trace_id"] == "t"


def test_a_file_is_plain_text_once() -> None:
    """P11: Codex and Claude Code show a model structured content as escaped JSON."""
    done = call_result(ToolResult("a\n", data={"content": "a\n"}), "t")
    assert done == {"content": [{"type": "text", "text": "a\n"}], "isError": False}
