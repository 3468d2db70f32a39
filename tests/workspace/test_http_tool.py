"""``run.http`` against real servers on the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.tool import Caller, Door, Mode, ToolResult
from evercontext.errors import (
    InvalidArguments,
    ModeRefused,
    PolicyError,
    ToolProblem,
    ToolTimeout,
)
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.http_tool import MAX_BODY, HttpPolicy, http_tool

CALLER = Caller("77777777-7777-4777-8777-777777777777", Door.RUN)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await respond(reader, writer)
    finally:
        writer.close()


async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        (
            int(line.split(":")[1])
            for line in head.splitlines()
            if line.lower().startswith("content-l")
        ),
        0,
    )
    body = await reader.readexactly(length)
    path = head.split()[1]
    if path == "/slow":
        await asyncio.sleep(3)
    if path == "/away":
        writer.write(
            b"HTTP/1.1 302 Found\r\nlocation: http://192.0.2.1/\r\ncontent-length: 0\r\n\r\n"
        )
    elif path == "/large":
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9000000\r\n\r\n" + b"x" * 9_000_000)
    elif path == "/nonsense":
        writer.write(b"\x00\xff not http\r\n\r\n")
    else:
        said = head.encode() + body
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n")
        writer.write(b"content-length: %d\r\n\r\n" % len(said) + said)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield int(server.sockets[0].getsockname()[1])
    server.close()


@pytest.fixture
async def events(tmp_path: Path) -> AsyncIterator[EventLog]:
    log = EventLog(tmp_path / "traces")
    yield log
    log.close()


async def ask(events: EventLog, policy: HttpPolicy | None = None, **arguments: Any) -> ToolResult:
    return await Toolbox([http_tool(policy)], events).call("run.http", arguments, CALLER)


@pytest.mark.contract("E53")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "app.localhost"])
async def test_a_get_on_this_machine(events: EventLog, port: int, host: str) -> None:
    result = await ask(events, url=f"http://{host}:{port}/a?b=c")
    assert result.data["status"] == 200, result.text
    assert result.data["body"].startswith("GET /a?b=c HTTP/1.1")
    assert f"host: {host}:{port}" in result.data["body"].lower()


@pytest.mark.contract("E53")
async def test_a_post_with_a_body(events: EventLog, port: int) -> None:
    body = '{"名": "値 $(id)"}'
    url = f"http://localhost:{port}/"
    result = await ask(events, url=url, method="POST", body=body)
    assert result.data["body"].endswith(body)
    assert "content-type: application/json" in result.data["body"].lower()


@pytest.mark.case(68)
@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://secret-canary.example.com/",
        "http://0.0.0.0/",
        "http://[::ffff:192.0.2.1]/",
        "http://localhost.example.com/",
        "http://2130706433/",
    ],
)
async def test_elsewhere_is_refused_without_a_look_up(events: EventLog, url: str) -> None:
    assert isinstance((await ask(events, url=url)).error, PolicyError)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://localhost/", "http://", "http://a@localhost/", "http://[x/", "x"],
)
async def test_what_is_no_plain_url_is_refused(events: EventLog, url: str) -> None:
    assert isinstance((await ask(events, url=url)).error, InvalidArguments)


async def test_our_own_doors_are_refused(events: EventLog, port: int) -> None:
    policy = HttpPolicy(anywhere=True, own_ports=lambda: {port})
    result = await ask(events, policy, url=f"http://localhost:{port}/approvals/1", method="POST")
    assert isinstance(result.error, PolicyError)


async def test_a_redirect_is_shown_and_not_followed(events: EventLog, port: int) -> None:
    result = await ask(events, url=f"http://localhost:{port}/away")
    assert (result.data["status"], result.data["location"]) == (302, "http://192.0.2.1/")


async def test_a_large_body_is_cut(events: EventLog, port: int) -> None:
    result = await ask(events, url=f"http://localhost:{port}/large")
    assert result.data["truncated"]
    assert len(result.data["body"]) == MAX_BODY


async def test_a_slow_server_is_given_up(events: EventLog, port: int) -> None:
    result = await ask(events, url=f"http://localhost:{port}/slow", timeout=1)
    assert isinstance(result.error, ToolTimeout)


@pytest.mark.parametrize("path", ["/nonsense"])
async def test_a_broken_answer_is_a_problem_of_the_call(
    events: EventLog, port: int, path: str
) -> None:
    result = await ask(events, url=f"http://localhost:{port}{path}")
    assert isinstance(result.error, ToolProblem)


async def test_nobody_listening_is_said(events: EventLog) -> None:
    result = await ask(events, url="http://127.0.0.1:1/")
    assert isinstance(result.error, ToolProblem)


@pytest.mark.contract("N7")
async def test_plan_mode_has_no_requests(events: EventLog, port: int) -> None:
    caller = Caller(CALLER.trace_id, Door.RUN, Mode.PLAN)
    toolbox = Toolbox([http_tool()], events)
    result = await toolbox.call("run.http", {"url": f"http://localhost:{port}/"}, caller)
    assert isinstance(result.error, ModeRefused)
