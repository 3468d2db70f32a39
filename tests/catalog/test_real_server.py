"""A server of the official SDK over each of its transports."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evercontext.catalog.server_table import ServerConfig
from evercontext.domain.caller_scope import Aside
from tests.catalog.world import EVERYBODY, run, servers

PROGRAM = Path(__file__).with_name("real_server.py")


@contextmanager
def serving(kind: str) -> Iterator[int]:
    """The server in a process of its own, once it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, str(PROGRAM), kind, str(port)]) as process:
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None
                    time.sleep(0.1)
            yield port
        finally:
            process.kill()


@pytest.mark.contract("T7")
@pytest.mark.parametrize(("kind", "path"), [("http", "/mcp"), ("sse", "/sse")])
async def test_it_is_called_over_http(tmp_path: Path, kind: str, path: str) -> None:
    with serving(kind) as port:
        config = ServerConfig("real", url=f"http://127.0.0.1:{port}{path}")
        async with servers(tmp_path, config) as opened:
            told: list[float] = []
            answer = await run(opened, "real:add", a=1, b=2)
            assert answer["structuredContent"] == {"result": 3}
            (backend,) = await opened.visible(EVERYBODY)
            entry = next(entry for entry in await backend.entries() if entry.name == "count")
            aside = Aside(lambda progress: told.append(progress["progress"]))
            params = {"name": entry.name, "arguments": {"to": 3}}
            counted = await backend.ask("tools/call", params, aside)
            assert counted.value["content"][0]["text"] == "counted to 3"
            assert told == [1, 2, 3]
            several = (run(opened, "real:add", a=i, b=i) for i in range(10))
            sums = [one["structuredContent"]["result"] for one in await asyncio.gather(*several)]
            assert sums == [2 * i for i in range(10)]
            listed = await backend.list_all("resources")
            assert [one["uri"] for one in listed.items] == ["memo://today"]
