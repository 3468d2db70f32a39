"""The evaluator's two tools at every door but the WebSocket, which has tests of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcp import Client, StdioServerParameters
from tests.server.router.test_http import Client as RouterClient
from tests.server.router.test_http import routing
from tests.server.running import COMMAND, running

MOCK = {"USE_MOCK_EVALUATOR": "true"}
TEXT = "# 題名\n\nTODO {{accuracy_weight}}\n"


@asynccontextmanager
async def door(kind: str, folder: Path) -> AsyncIterator[Client]:
    (folder / "root").mkdir()
    home = folder / "home"
    if kind == "http":
        with running(folder / "root", home, MOCK) as gateway:
            async with Client(f"{gateway.url}/mcp", read_timeout_seconds=60) as client:
                yield client
        return
    environment = {"EC_APP_ROOT": str(folder / "root"), "EC_HOME": str(home), **MOCK}
    server = StdioServerParameters(
        command=sys.executable, args=["-c", COMMAND, "mcp"], env=environment
    )
    async with Client(server, read_timeout_seconds=60) as client:
        yield client


@pytest.mark.slow
@pytest.mark.contract("L1", "L4", "L5", "L21")
@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_both_tools_over_stdio_and_http(tmp_path: Path, kind: str) -> None:
    async with door(kind, tmp_path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"evaluate_document", "get_improvement_suggestions"} <= tools.keys()
        hints = tools["evaluate_document"].annotations
        assert hints is not None
        assert hints.read_only_hint is True
        judged = await client.call_tool("evaluate_document", {"content": TEXT, "target_score": 0})
        told = judged.structured_content
        assert told is not None
        assert (told["pass"], told["metadata"]["model_used"]) == (True, "local")
        advice = await client.call_tool("get_improvement_suggestions", {"content": TEXT})
        assert advice.structured_content is not None
        said = advice.structured_content["suggestions"]
        assert 'line 3: "TODO" stands where text should be' in said
        wrong = await client.call_tool(
            "evaluate_document", {"content": TEXT, "rubric": {"clarity": -1}}
        )
        assert wrong.is_error
        assert "rubric.clarity" in wrong.content[0].text  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.contract("T37", "L5")
@pytest.mark.parametrize("query", ["judge a document by a rubric", "文書を採点し改善点を知る"])
def test_the_catalog_finds_and_runs_them(tmp_path: Path, query: str) -> None:
    with routing(tmp_path, EC_ROUTER_OPEN="1", **MOCK) as url:
        client = RouterClient(url)
        answer = client.call("tool_discovery", query=query)
        found = json.loads(answer["content"][0]["text"])["results"]
        assert "evercontext:evaluate_document" in [one["toolKey"] for one in found]
        key, arguments = "evercontext:evaluate_document", {"content": TEXT}
        done = client.call("tool_execute", toolKey=key, arguments=arguments)
        assert "'model_used': 'local'" in str(done).replace('"', "'")
        wrong = client.call("tool_execute", toolKey=key, arguments={"content": TEXT, "rubric": {}})
        assert wrong["isError"] is True
