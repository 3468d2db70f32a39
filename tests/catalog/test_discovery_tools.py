"""The two tools: found by what they do, called by the one road, hidden from who may not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.caller_scope import Scope
from evercontext.domain.tool import Arguments, Caller, Effect, Mode, Tool, ToolResult
from evercontext.tools.approval_gate import Gate, Verdict
from tests.catalog.world import caller, odd, servers, toolbox


async def _greet(arguments: Arguments, caller: Caller) -> ToolResult:
    return ToolResult(text="hello", data={"said": "hello"})


GREETING = Tool("greet", "Greet somebody.", {"type": "object"}, Effect.READ, _greet)


def keys(result: ToolResult) -> list[str]:
    return [one["toolKey"] for one in result.data["results"]]


@pytest.mark.contract("T1", "T30", "T31")
async def test_a_tool_is_found_and_called(tmp_path: Path) -> None:
    async with (
        servers(tmp_path, odd("one"), odd("two")) as opened,
        toolbox(tmp_path, opened) as box,
    ):
        found = await box.call("tool_discovery", {"query": "say it again"}, caller())
        best = found.data["results"][0]
        assert best["toolKey"] in ("one:echo", "two:echo")
        assert best["inputSchema"]["properties"] == {"text": {"type": "string"}}
        assert 0 < best["relevance"] <= 1
        assert json.loads(found.text) == found.data
        call = {"toolKey": "one:echo", "arguments": {"text": "やあ"}}
        done = await box.call("tool_execute", call, caller())
        assert done.data["result"]["content"] == [{"type": "text", "text": "やあ"}]


@pytest.mark.contract("T30")
async def test_several_queries_and_a_limit(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened, toolbox(tmp_path, opened) as box:
        asked = {"query": ["say the text", "show the environment"], "maxResults": 2}
        found = await box.call("tool_discovery", asked, caller())
        assert set(keys(found)) == {"one:echo", "one:environment"}
        refused = await box.call("tool_discovery", {"query": "x", "maxResults": 0}, caller())
        assert refused.error is not None


@pytest.mark.contract("T37")
async def test_our_own_tools_are_found_like_any_other(tmp_path: Path) -> None:
    async with servers(tmp_path) as opened, toolbox(tmp_path, opened) as box:
        both = box.along_with([GREETING])
        found = await both.call("tool_discovery", {"query": "greet"}, caller())
        assert keys(found)[0] == "evercontext:greet"
        done = await both.call("tool_execute", {"toolKey": "evercontext:greet"}, caller())
        assert done.data == {"result": {"said": "hello"}}


@pytest.mark.contract("T18", "T19", "T32")
@pytest.mark.case(82)
async def test_what_is_not_for_the_caller_is_not_there(tmp_path: Path) -> None:
    configs = [
        odd("off", enabled=False),
        odd("theirs", project="theirs"),
        odd("part", tool_permissions={"echo": False}),
        odd("mine", project="mine"),
    ]
    scope = Scope("mine", frozenset({"off", "theirs", "part", "mine"}))
    async with servers(tmp_path, *configs) as opened, toolbox(tmp_path, opened, scope) as box:
        asked = {"query": ["say text", "always fail", "show the environment"]}
        found = await box.call("tool_discovery", asked, caller())
        assert set(keys(found)) == {
            "mine:echo",
            "mine:fail",
            "mine:environment",
            "part:fail",
            "part:environment",
        }
        answers = set()
        for key in ("off:echo", "theirs:echo", "part:echo", "nowhere:echo", "mine:nothing"):
            done = await box.call("tool_execute", {"toolKey": key}, caller())
            assert done.error is not None
            answers.add(str(done.error).replace(key, "KEY"))
        assert len(answers) == 1


@pytest.mark.contract("T34")
async def test_without_a_project_only_everybodys_servers(tmp_path: Path) -> None:
    configs = [odd("mine", project="mine"), odd("free")]
    async with servers(tmp_path, *configs) as opened, toolbox(tmp_path, opened) as box:
        found = await box.call("tool_discovery", {"query": "say"}, caller())
        assert {key.partition(":")[0] for key in keys(found)} == {"free"}


@pytest.mark.contract("T32")
@pytest.mark.parametrize(
    "key",
    ["tool_execute", "evercontext:tool_execute", "evercontext:tool_discovery", "x:tool_execute"],
)
async def test_the_two_cannot_call_themselves(tmp_path: Path, key: str) -> None:
    async with servers(tmp_path) as opened, toolbox(tmp_path, opened) as box:
        done = await box.call("tool_execute", {"toolKey": key, "arguments": {}}, caller())
        assert done.error is not None
        assert done.error.code == "unknown_tool"


async def test_an_outside_tool_is_judged_by_what_it_may_do(tmp_path: Path) -> None:
    asked: list[str] = []

    def policy(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        asked.append(tool.name)
        return "deny" if tool.effects & Effect.EXECUTE else "allow"

    async with servers(tmp_path, odd("one")) as opened, toolbox(tmp_path, opened) as box:
        call: dict[str, Any] = {"toolKey": "one:echo", "arguments": {}}
        done = await box.behind(Gate(policy)).call("tool_execute", call, caller())
        assert done.error is not None
        assert done.error.code == "approval_denied"
        assert asked == ["tool_execute", "one:echo"]
        planned = await box.call("tool_execute", call, caller(Mode.PLAN))
        assert planned.error is not None
        assert planned.error.code == "mode_refused"


async def test_an_error_of_the_tool_is_an_error_of_the_call(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened, toolbox(tmp_path, opened) as box:
        done = await box.call("tool_execute", {"toolKey": "one:fail"}, caller())
        assert not done.ok


async def test_the_step_of_a_trace_is_the_tool_that_was_meant(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("one")) as opened, toolbox(tmp_path, opened) as box:
        await box.call("tool_execute", {"toolKey": "one:echo"}, caller())
        await box.call("tool_execute", {"toolKey": "one:nothing"}, caller())
        # The lines of a request are written together, when this turn of the event loop is over.
        await asyncio.sleep(0)
        (segment,) = (tmp_path / "traces").glob("*.jsonl")
        lines = [json.loads(line) for line in segment.read_text().splitlines()]
        steps = [(line["type"], line["data"]["tool"]) for line in lines]
        # What leads nowhere leaves its own.
        assert steps == [
            ("step", "one:echo"),
            ("tool_result", "one:echo"),
            ("step", "tool_execute"),
            ("tool_result", "tool_execute"),
        ]
        assert lines[-1]["data"]["error"] == "unknown_tool"
