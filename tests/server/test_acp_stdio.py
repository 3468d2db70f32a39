from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT
from tests.journeys.story import call, script

WRITE = call("writeFile", path="a.py", content="x\n")


class Wire:
    """An editor that writes whatever it likes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.write, self.read = process.stdin, process.stdout

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.say({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    async def say(self, message: Any) -> dict[str, Any]:
        await self.raw(json.dumps(message).encode())
        while (heard := await self.hear()).get("id") != 1 or "method" in heard:
            pass
        return heard

    async def raw(self, line: bytes) -> None:
        self.write.write(line + b"\n")
        await self.write.drain()

    async def hear(self) -> dict[str, Any]:
        line = await self.read.readline()
        assert line, "the agent is gone"
        heard: dict[str, Any] = json.loads(line)
        return heard


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    model = script(tmp_path / "s.jsonl", {"tool_calls": [WRITE]}, {"text": "Done."})
    process = await asyncio.create_subprocess_exec(
        EVERCONTEXT, "acp", "-m", model, cwd=tmp_path, stdin=-1, stdout=-1, limit=2**20
    )
    yield Wire(process)
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


@pytest.mark.slow
async def test_what_is_no_message_is_answered_and_ends_nothing(wire: Wire, tmp_path: Path) -> None:
    lines = [
        b"5",
        b"null",
        b"[]",
        b'[{"id": 1}]',
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"id": {}, "result": {}}',
        b"A" * (17 * 2**20),
    ]
    for line in lines:
        await wire.raw(line)
        assert (await wire.hear())["error"]["code"] in (-32700, -32600), line[:40]
    (tmp_path / "project").mkdir()
    opened = await wire.ask("session/new", cwd=str(tmp_path / "project"), mcpServers=[])
    assert opened["result"]["sessionId"]
    nul = await wire.ask("session/new", cwd="/tmp\0", mcpServers=[])
    assert "NUL" in nul["error"]["data"]["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [{"result": {}}, {"result": {"outcome": True}}, {"error": 5}, {"error": {"code": 1}}]
)
async def test_an_answer_that_cannot_be_read_is_a_no(
    wire: Wire, tmp_path: Path, answer: dict[str, Any]
) -> None:
    (project := tmp_path / "project").mkdir()
    opened = await wire.ask("session/new", cwd=str(project), mcpServers=[])
    text = [{"type": "text", "text": "make a"}]
    prompt = {"sessionId": opened["result"]["sessionId"], "prompt": text}
    await wire.raw(json.dumps({"id": 1, "method": "session/prompt", "params": prompt}).encode())
    calls: dict[str, list[str]] = {}
    while (heard := await wire.hear()).get("id") != 1 or "method" in heard:
        if heard.get("method") == "session/request_permission":
            await wire.raw(json.dumps({"id": heard["id"], **answer}).encode())
        elif "toolCallId" in (update := heard["params"]["update"]):
            calls.setdefault(update["toolCallId"], []).append(update["status"])
    assert heard["result"]["stopReason"] == "end_turn"
    assert list(project.iterdir()) == []
    # The call that was asked about is the one that failed, and it never ran.
    assert list(calls.values()) == [["pending", "failed"]]
