from __future__ import annotations

from pathlib import Path
from typing import Any

from evercontext.domain.tool import Caller, Door, Effect, Tool
from evercontext.events.log import EventLog
from evercontext.index.code_search import CodeIndex
from evercontext.index.structure.questions import QUESTIONS
from evercontext.index.structure.tools import structure_tools
from evercontext.server.mcp_results import tool_definition
from evercontext.tools.toolbox import Toolbox
from tests.index.structure.world import PYTHON
from tests.index.world import opened, write

TRACE = "5f0c1a52-6c1f-4e0e-9d93-0a4a5a8a2f10"


def _tools(index: CodeIndex | None) -> list[Tool]:
    async def open_index(caller: Caller) -> CodeIndex:
        assert index is not None
        return index

    return structure_tools(open_index, lambda text: len(text.split()))


def test_every_question_is_offered() -> None:
    """The tool lists them itself, so that offering it does not load what answers."""
    tool = next(tool for tool in _tools(None) if tool.name == "find_symbol")
    assert tuple(tool.arguments["properties"]["question"]["enum"]) == QUESTIONS


async def test_the_tools_answer_in_text_and_data(tmp_path: Path) -> None:
    write(tmp_path / "tree", PYTHON)
    log = EventLog(tmp_path / "traces")

    async def call(tool: str, **arguments: Any) -> Any:
        return await Toolbox(_tools(index), log).call(tool, arguments, Caller(TRACE, Door.MCP))

    async with opened(tmp_path / "tree") as index:
        callers = await call("find_symbol", question="callers", name="Cart.add")
        assert callers.data["results"][0] == {
            "path": "shop/checkout.py",
            "line": 10,
            "kind": "call",
            "symbol": "Paid.pay",
            "text": "self.cart.add(1)",
            "certainty": "type",
        }
        assert callers.hits == 3
        listed = await call("outline_file", path="shop/cart.py")
        assert listed.data["symbols"][1]["signature"] == "class Base"
        drawn = await call("map_code", budget=60)
        assert drawn.data["tokens"] <= 60
        missing = await call("outline_file", path="missing.py")
        assert missing.error is not None
        wrong = await call("find_symbol", question="colour", name="Cart")
        assert wrong.error is not None
    log.close()


def test_they_only_read_and_say_so_over_mcp() -> None:
    for tool in _tools(None):
        assert tool.effects is Effect.READ
        shown = tool_definition(tool)
        assert shown["annotations"]["readOnlyHint"]
        assert shown["title"]
