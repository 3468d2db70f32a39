"""Servers behind the transport from before Streamable HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evercontext.catalog.server_table import ServerConfig, read_config
from evercontext.errors import ServerProblem
from tests.catalog.world import EVERYBODY, run, servers
from tests.mcp.client.test_http import reply


@dataclass
class Seen:
    """What the server saw of its client."""

    heads: list[bytes] = field(default_factory=list)
    streams: list[asyncio.StreamWriter] = field(default_factory=list)
    posting: int = 0
    """Connections over which messages may be posted."""


@asynccontextmanager
async def old_server(endpoint: str = "/post?session=1") -> AsyncIterator[tuple[str, Seen]]:
    """A server with one stream and a place to post to."""
    seen = Seen()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.posting += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                seen.heads.append(head)
                if head.startswith(b"GET /sse "):
                    kind = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
                    writer.write(kind + b"event: endpoint\ndata: " + endpoint.encode() + b"\n\n")
                    seen.streams.append(writer)
                    return
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                message = json.loads(await reader.readexactly(size))
                if not head.startswith(b"POST /post"):
                    writer.write(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                    continue
                writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 8\r\n\r\nAccepted")
                if "id" in message:
                    line = json.dumps(reply(message)).encode()
                    seen.streams[-1].write(b"event: message\ndata: " + line + b"\n\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
        finally:
            seen.posting -= 1

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/sse", seen
        for stream in seen.streams:
            stream.close()


@pytest.mark.contract("T7")
@pytest.mark.parametrize("said", [True, False])
async def test_a_call_over_the_old_transport(tmp_path: Path, said: bool) -> None:
    """Whether the user said so, or the server refused the new one."""
    async with (
        old_server() as (url, seen),
        servers(tmp_path, ServerConfig("old", url=url, sse=said)) as opened,
    ):
        answers = await asyncio.gather(*(run(opened, "old:echo", text=str(i)) for i in range(5)))
        texts = [json.loads(answer["content"][0]["text"])["text"] for answer in answers]
        assert texts == ["0", "1", "2", "3", "4"]
        assert sum(head.startswith(b"GET") for head in seen.heads) == 1


@pytest.mark.case(83)
async def test_another_servers_address_gets_nothing(tmp_path: Path) -> None:
    async with (
        old_server("http://evil.invalid/post") as (url, _),
        servers(tmp_path, ServerConfig("old", url=url, sse=True)) as opened,
    ):
        with pytest.raises(ServerProblem, match="another server"):
            await opened.find("old:echo", EVERYBODY)


async def test_the_end_of_the_stream_is_the_end(tmp_path: Path) -> None:
    async with servers(tmp_path) as opened:
        async with old_server() as (url, _):
            await opened.table.put(ServerConfig("old", url=url, sse=True))
            await run(opened, "old:echo", text="x")
        (backend,) = await opened.visible(EVERYBODY)
        for _ in range(3_000):
            if backend.state != "running":
                break
            await asyncio.sleep(0.01)
        assert backend.state == "stopped"


async def test_nothing_is_kept_open_to_a_server_whose_stream_ended(tmp_path: Path) -> None:
    """S2: a server of Python 3.12 or newer that stops would wait for our idle connections."""
    async with servers(tmp_path) as opened, old_server() as (url, seen):
        await opened.table.put(ServerConfig("old", url=url, sse=True))
        await run(opened, "old:echo", text="x")
        assert seen.posting > 0
        seen.streams[-1].close()
        for _ in range(1_000):
            if seen.posting == 0:
                break
            await asyncio.sleep(0.01)
        assert seen.posting == 0


def test_a_client_configuration_says_so() -> None:
    config = read_config("x", {"type": "sse", "url": "http://localhost/sse"})
    assert config.transport == "sse"
    assert read_config("x", {"url": "http://localhost/mcp"}).transport == "http"
