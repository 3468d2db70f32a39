"""A server behind Streamable HTTP: JSON and streams, its own credentials, and its bad days."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.server_table import ServerConfig
from evercontext.errors import ServerGone, ServerProblem, ServerTimeout
from tests.catalog.world import EVERYBODY, run, servers

Respond = Callable[[dict[str, Any]], bytes]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "h"}}
TOOL = {"name": "echo", "description": "Say it.", "inputSchema": {"type": "object"}}


def plain(message: dict[str, Any]) -> bytes:
    """Answer with JSON, as most servers do."""
    return http(json.dumps(reply(message)).encode(), "application/json")


def streamed(message: dict[str, Any]) -> bytes:
    """Answer with a stream that says something else first."""
    noise = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    events = "".join(
        f"event: message\r\ndata: {json.dumps(one)}\r\n\r\n" for one in (noise, reply(message))
    )
    return http(events.encode(), "text/event-stream")


def reply(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        result: dict[str, Any] = HELLO
    elif message["method"] == "tools/list":
        result = {"tools": [TOOL]}
    else:
        text = json.dumps(message["params"].get("arguments"))
        result = {"content": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


def http(body: bytes, media: str, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"mcp-session-id: s1\r\nconnection: close\r\n\r\n" + body


@asynccontextmanager
async def serving(
    respond: Respond, *, needs_id: bool = True
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers each request as told, and the heads it saw."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            heads.append(head)
            if head.startswith(b"GET"):
                writer.write(http(b"", "text/plain", "405 No stream here"))
                return
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            message = json.loads(await reader.readexactly(size))
            answers = "id" in message or not needs_id
            writer.write(respond(message) if answers else http(b"", "text/plain", "202 OK"))
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp", heads


@pytest.mark.contract("T7")
@pytest.mark.parametrize("respond", [plain, streamed])
async def test_a_call_over_http(tmp_path: Path, respond: Respond) -> None:
    async with (
        serving(respond) as (url, heads),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        answer = await run(opened, "far:echo", text="やあ")
        assert json.loads(answer["content"][0]["text"]) == {"text": "やあ"}
        assert b"mcp-session-id: s1" in heads[-1].lower()
        assert b"mcp-protocol-version: 2025-06-18" in heads[-1].lower()


@pytest.mark.case(83)
@pytest.mark.contract("T29")
async def test_a_server_sees_its_own_credential_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR_KEY", "its-own")
    monkeypatch.setenv("EC_TOKEN", "ours-alone")
    headers = {"Authorization": "Bearer ${FAR_KEY}"}
    async with (
        serving(plain) as (url, heads),
        servers(tmp_path, ServerConfig("far", url=url, headers=headers)) as opened,
    ):
        await run(opened, "far:echo")
        assert all(b"Bearer its-own" in head for head in heads)
        assert not any(b"ours-alone" in head for head in heads)


@pytest.mark.case(89)
@pytest.mark.parametrize("media", ["application/json", "text/event-stream"])
async def test_an_answer_without_measure_is_cut(tmp_path: Path, media: str) -> None:
    def respond(message: dict[str, Any]) -> bytes:
        if message["method"] == "tools/call":
            return http(b"data: " + b"x" * 8_000_000, media)
        return plain(message)

    async with (
        serving(respond) as (url, _),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        with pytest.raises(ServerProblem, match="more than 4194304 bytes"):
            await run(opened, "far:echo")


@pytest.mark.case(85)
async def test_a_stream_that_never_answers_ends(tmp_path: Path) -> None:
    def respond(message: dict[str, Any]) -> bytes:
        if message["method"] == "tools/call":
            return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: wait\n\n"
        return plain(message)

    async with (
        serving(respond) as (url, _),
        servers(tmp_path, ServerConfig("far", url=url, call_seconds=0.5)) as opened,
    ):
        with pytest.raises((ServerTimeout, ServerProblem)):
            await run(opened, "far:echo")


async def test_nobody_listens(tmp_path: Path) -> None:
    async with serving(plain) as (url, _):
        pass
    async with servers(tmp_path, ServerConfig("far", url=url)) as opened:
        with pytest.raises(ServerGone, match="cannot be reached"):
            await opened.find("far:echo", EVERYBODY)


async def test_an_error_status_is_an_error(tmp_path: Path) -> None:
    def respond(message: dict[str, Any]) -> bytes:
        return http(b"no", "text/plain", "401 Unauthorized")

    async with (
        serving(respond) as (url, _),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        with pytest.raises(ServerProblem, match="HTTP 401"):
            await opened.find("far:echo", EVERYBODY)
