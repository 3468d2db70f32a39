"""The tool router over stdio, before real servers, with the official client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from evercontext.catalog.server_log import read_log
from evercontext.process.stdin import LONGEST_LINE
from mcp import Client, MCPError, StdioServerParameters
from tests.catalog.world import ODD_SERVER
from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.server.routed import REAL_SERVER

ERAS = ["legacy", "auto"]


def add(name: str, server: Path, how: str, *options: str) -> None:
    command = ("--", sys.executable, str(server), how)
    done = evercontext("servers", "add", name, *options, *command)
    assert done.code == 0, done.err


@asynccontextmanager
async def connected(folder: Path, era: Any, **options: Any) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=EVERCONTEXT, args=["mcp", "--router"], env=dict(os.environ), cwd=folder
    )
    async with Client(server, mode=era, read_timeout_seconds=60, **options) as client:
        yield client


async def warm(client: Client) -> None:
    """Wait until the real server runs: it starts slowly on a busy machine."""
    call = {"toolKey": "real:add", "arguments": {"a": 1, "b": 2}}
    done = await client.call_tool("tool_execute", call)
    assert done.content[0].text == "3"  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.contract("T9", "T37")
@pytest.mark.parametrize("era", ERAS)
async def test_resources_and_prompts(tmp_path: Path, era: str) -> None:
    add("real", REAL_SERVER, "stdio")
    add("one", ODD_SERVER, "good")
    async with connected(tmp_path, era) as client:
        await warm(client)
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["tool_discovery", "tool_execute"]
        listed = (await client.list_resources()).resources
        assert [str(one.uri) for one in listed] == ["evercontext://real/memo://today"]
        read = (await client.read_resource(str(listed[0].uri))).contents[0]
        assert (read.text, str(read.uri)) == ("buy milk", str(listed[0].uri))  # type: ignore[union-attr]
        template = (await client.list_resource_templates()).resource_templates[0].uri_template
        assert template == "evercontext://real/memo://day/{day}"
        day = await client.read_resource(template.replace("{day}", "月曜"))
        assert day.contents[0].text == "on 月曜: nothing"  # type: ignore[union-attr]
        assert [one.name for one in (await client.list_prompts()).prompts] == ["real:greet"]
        filled = await client.get_prompt("real:greet", {"name": "愛子"})
        assert filled.messages[0].content.text == "Say hello to 愛子."  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="there is no 'nobody:greet'"):
            await client.get_prompt("nobody:greet")
        with pytest.raises(MCPError, match="there is no 'gone://today'"):
            await client.read_resource("gone://today")
    seen = {(one["method"], one["server"], one["status"]) for one in audit()}
    assert {("resources/read", "real", 200), ("prompts/get", "real", 200)} <= seen


def audit() -> list[dict[str, Any]]:
    lines = []
    for segment in home().rglob("*.jsonl"):
        events = map(json.loads, segment.read_text().splitlines())
        lines += [one["data"] for one in events if one.get("type") == "audit"]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_the_client(tmp_path: Path, era: str) -> None:
    add("real", REAL_SERVER, "stdio")
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected(tmp_path, era) as client:
        call = {"toolKey": "real:count", "arguments": {"to": 3}}
        done = await client.call_tool("tool_execute", call, progress_callback=hear)
        assert done.content[0].text == "counted to 3"  # type: ignore[union-attr]
    assert told == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]


async def test_a_call_is_taken_back(tmp_path: Path) -> None:
    add("slow", ODD_SERVER, "cancel")
    async with connected(tmp_path, "legacy") as client:
        call = {"toolKey": "slow:echo", "arguments": {"text": "x"}}
        asking = asyncio.create_task(client.call_tool("tool_execute", call))
        await _until_said("called")
        asking.cancel()
        await _until_said("cancelled")
        assert len((await client.list_tools()).tools) == 2


async def _until_said(word: str) -> None:
    """Wait until the slow server has said this on stderr."""
    for _ in range(3_000):
        if any(line.endswith(word) for line in read_log(home() / "servers", "slow")):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"the server never said {word}")


@pytest.mark.contract("T7")
async def test_a_server_asks_its_client_back(tmp_path: Path) -> None:
    add("shy", ODD_SERVER, "asks-back")

    async def fill(context: ClientRequestContext, parameters: ElicitRequestParams) -> ElicitResult:
        assert parameters.message == "Whose name?"
        return ElicitResult(action="accept", content={"text": "愛子"})

    async with connected(tmp_path, "auto", elicitation_callback=fill) as client:
        call = {"toolKey": "shy:echo", "arguments": {"text": "x"}}
        done = await client.call_tool("tool_execute", call)
        said = json.loads(done.content[0].text)  # type: ignore[union-attr]
        assert said[0] == "half"
        assert said[1]["who"]["content"] == {"text": "愛子"}


@pytest.mark.slow
def test_a_project_that_wants_no_search_sees_every_tool(tmp_path: Path) -> None:
    add("free", ODD_SERVER, "good")
    assert evercontext("projects", "create", "web", "--path", ".", cwd=tmp_path).code == 0
    assert evercontext("projects", "set", "web", "--optimization", "null").code == 0
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "tools/list"},
        {
            "id": 2,
            "method": "tools/call",
            "params": {"name": "free__echo", "arguments": {"text": "やあ"}},
        },
    ]
    answers = piped(tmp_path, *lines)
    assert "free__echo" in {tool["name"] for tool in answers[1]["result"]["tools"]}
    assert answers[2]["result"]["content"][0]["text"] == "やあ"


class Talk:
    """A client of the handshake era, line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.told: list[str] = []

    def say(self, **message: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def hear(self) -> dict[str, Any]:
        assert self._process.stdout
        heard: dict[str, Any] = json.loads(
            await asyncio.wait_for(self._process.stdout.readline(), 60)
        )
        if "id" not in heard:
            self.told.append(heard["method"])
        return heard

    async def ask(self, id: int, method: str, **params: Any) -> dict[str, Any]:
        self.say(id=id, method=method, params=params)
        while (heard := await self.hear()).get("id") != id:
            pass
        found: dict[str, Any] = heard["result"]
        return found

    async def until_told(self, *wanted: str) -> None:
        while not set(wanted) <= set(self.told):
            await self.hear()


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[Talk]:
    process = await asyncio.create_subprocess_exec(
        EVERCONTEXT,
        "mcp",
        "--router",
        cwd=folder,
        limit=4 << 20,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    talk = Talk(process)
    try:
        hello = await talk.ask(1, "initialize", protocolVersion="2025-11-25")
        assert hello["capabilities"]["tools"] == {"listChanged": True}
        talk.say(method="notifications/initialized")
        yield talk
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


@pytest.mark.slow
@pytest.mark.contract("T9", "T37")
async def test_a_client_is_told_of_lists_that_changed(tmp_path: Path) -> None:
    add("first", ODD_SERVER, "good")
    assert evercontext("projects", "create", "web", "--path", ".", cwd=tmp_path).code == 0
    assert evercontext("projects", "set", "web", "--optimization", "null").code == 0
    async with talking(tmp_path) as talk:
        await talk.ask(2, "prompts/list")
        listed = await talk.ask(3, "tools/list")
        assert "first__echo" in {tool["name"] for tool in listed["tools"]}
        await asyncio.to_thread(add, "second", ODD_SERVER, "good")
        changed = ("notifications/tools/list_changed", "notifications/prompts/list_changed")
        await talk.until_told(*changed)
        listed = await talk.ask(4, "tools/list")
        assert "second__echo" in {tool["name"] for tool in listed["tools"]}
        talk.told.clear()
        done = await asyncio.to_thread(evercontext, "servers", "disable", "first", "echo")
        assert done.code == 0, done.err
        await talk.until_told(changed[0])
        # Nobody asked for the prompts again, so nobody is told again.
        assert talk.told == [changed[0]]


async def test_the_two_tools_stay_two_tools(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        assert len((await talk.ask(2, "tools/list"))["tools"]) == 2
        await talk.ask(3, "resources/list")
        await asyncio.to_thread(add, "one", ODD_SERVER, "good")
        await talk.until_told("notifications/resources/list_changed")
        assert len((await talk.ask(4, "tools/list"))["tools"]) == 2
        assert talk.told == ["notifications/resources/list_changed"]


def test_odd_lines_are_answered_and_stdout_is_the_protocols_alone(tmp_path: Path) -> None:
    answers = piped(
        tmp_path,
        {"id": 1, "method": "sampling/createMessage"},
        {"id": 2, "method": "tools/call", "params": {"name": "read_file"}},
        {
            "id": 3,
            "method": "tools/list",
            "params": {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2031-01-01",
                    "io.modelcontextprotocol/clientCapabilities": {},
                }
            },
        },
        {"id": 4, "method": "prompts/get"},
        {"id": 5, "method": "ping"},
        {"method": "notifications/initialized"},
        {"id": 6, "result": {}},
        before="not json\n[]\n\n",
    )
    codes = {id: one["error"]["code"] for id, one in answers.items() if "error" in one}
    assert codes == {None: -32600, 1: -32601, 2: -32602, 3: -32022, 4: -32602}
    assert answers[5]["result"] == {}
    assert 6 not in answers


def test_requests_may_lie_in_a_file(tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    with asked.open() as file:
        done = subprocess.run(
            [EVERCONTEXT, "mcp", "--router"],
            stdin=file,
            capture_output=True,
            cwd=tmp_path,
            timeout=60,
            check=True,
        )
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("door", [[], ["--router"]])
def test_nothing_on_stdin_is_the_end(tmp_path: Path, door: list[str]) -> None:
    done = evercontext("mcp", *door, cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert "Traceback" not in done.err


def test_a_message_without_end_is_refused(tmp_path: Path) -> None:
    done = evercontext("mcp", "--router", stdin=b"x" * (LONGEST_LINE + 1), cwd=tmp_path)
    assert done.code == 1
    assert "longer than 16 MiB" in done.err


def piped(folder: Path, *lines: dict[str, Any], before: str = "") -> dict[Any, dict[str, Any]]:
    """What is answered to a script that writes everything at once, by id."""
    sent = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    done = evercontext("mcp", "--router", stdin=before + sent, cwd=folder)
    assert done.code == 0, done.err
    return {one["id"]: one for one in map(json.loads, done.out.splitlines())}
