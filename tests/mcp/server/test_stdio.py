"""L3: whatever comes after ``initialize`` is answered after it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from evercontext.mcp.messages import RpcRequest, encode_result
from evercontext.mcp.server.stdio import StdioServer

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'


class Client:
    """Sends lines to a server whose handshake takes as long as the test wants."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.server = StdioServer(self.respond, lambda _: None)

    async def respond(self, request: RpcRequest) -> bytes:
        if request.method == "initialize":
            await self.go_on.wait()
        return encode_result(request.id, {})

    def send(self, *lines: bytes) -> None:
        for line in lines:
            self.server._receive(line)

    async def answers(self) -> list[Any]:
        await asyncio.gather(*self.server._tasks, return_exceptions=True)
        await asyncio.sleep(0)
        lines = [self.server._lines.get_nowait() for _ in range(self.server._lines.qsize())]
        return [json.loads(line)["id"] for line in lines if line]


@pytest.mark.contract("L3")
async def test_the_answer_to_the_handshake_is_the_first_line() -> None:
    client = Client()
    client.send(HELLO, b"not json", PING)
    await asyncio.sleep(0)
    assert client.server._lines.empty()
    client.go_on.set()
    first, *others = await client.answers()
    assert first == 1
    assert sorted(map(str, others)) == ["2", "None"]


async def test_a_handshake_that_is_cancelled_holds_nothing_back() -> None:
    client = Client()
    client.send(HELLO, b"not json")
    client.send(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    )
    assert await client.answers() == [None]
