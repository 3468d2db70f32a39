"""A7: web_fetch reads public pages, and nothing else, once somebody allowed the site."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext.access.approval_rules import parse, rules_for
from evercontext.access.permissions import Permissions
from evercontext.domain.event import Approval, Event
from evercontext.domain.tool import Caller, Door, Mode, ToolResult
from evercontext.errors import (
    ApprovalDenied,
    EverContextError,
    InvalidArguments,
    ModeRefused,
    PolicyError,
    ToolProblem,
)
from evercontext.events.log import EventLog
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.web_fetch import MAX_BODY, FetchPolicy, is_public, web_fetch_tool

CALLER = Caller("77777777-7777-4777-8777-777777777777", Door.CHAT)
PAGES = {
    "/": ("200 OK", "content-type: text/html", b"<title>T</title><p>Hello <b>you</b></p>"),
    "/json": ("200 OK", "content-type: application/json", b'{"a": 1}'),
    "/moved": ("302 Found", "location: /json", b""),
    "/away": ("302 Found", "location: http://other.example/x", b""),
    "/inside": ("302 Found", "location: http://169.254.169.254/latest/meta-data", b""),
    "/loop": ("302 Found", "location: /loop", b""),
    "/image": ("200 OK", "content-type: image/png", b"\x89PNG"),
    "/large": ("200 OK", "content-type: text/plain", b"x" * (MAX_BODY + 5000)),
    "/packed": ("200 OK", "content-type: text/plain\r\ncontent-encoding: gzip", b"\x1f\x8b"),
    "/sjis": ("200 OK", "content-type: text/plain; charset=shift_jis", "日本".encode("shift_jis")),
}


async def _respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, header, body = PAGES[head.split()[1]]
    writer.write(f"HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
    writer.write(body)
    writer.close()


@pytest.fixture
async def site() -> AsyncIterator[str]:
    server = await asyncio.start_server(_respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
async def events(tmp_path: Path) -> AsyncIterator[EventLog]:
    log = EventLog(tmp_path / "traces")
    yield log
    log.close()


async def fetch(url: str, events: EventLog, *, only_public: bool = False) -> ToolResult:
    async def ask(question: ApprovalQuestion) -> ApprovalAnswer:
        return ApprovalAnswer(True, "you")

    policy = None if only_public else FetchPolicy(lambda address: address == "127.0.0.1")
    box = Toolbox([web_fetch_tool(policy)], events, Gate(Permissions("/p", yes=True), ask))
    return await box.call("web_fetch", {"url": url}, CALLER)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", "T\n\nHello you"),
        ("/json", '{"a": 1}'),
        ("/moved", '{"a": 1}'),
        ("/away", "redirects to another site: http://other.example/x"),
        ("/inside", "redirects to another site: http://169.254.169.254"),
        ("/sjis", "日本"),
        ("/large", "characters left out"),
    ],
)
async def test_a_page_is_read_as_text(site: str, events: EventLog, path: str, words: str) -> None:
    result = await fetch(site + path, events)
    assert result.ok, result.text
    assert words in result.text


@pytest.mark.parametrize("path", ["/loop", "/image", "/packed"])
async def test_what_is_no_text_is_refused(site: str, events: EventLog, path: str) -> None:
    assert isinstance((await fetch(site + path, events)).error, ToolProblem)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:9/", PolicyError),
        ("http://localhost/", PolicyError),
        ("http://[::1]/", PolicyError),
        ("http://[::ffff:127.0.0.1]/", PolicyError),
        ("http://0.0.0.0/", PolicyError),
        ("http://10.0.0.1/", PolicyError),
        ("http://169.254.169.254/latest", PolicyError),
        ("http://100.64.0.1/", PolicyError),
        ("file:///etc/passwd", InvalidArguments),
        ("https://user@example.com/", InvalidArguments),
        ("https://example.com\\@evil.example/", InvalidArguments),
        ("https://example.com/ a", InvalidArguments),
    ],
)
async def test_addresses_that_are_not_of_the_open_internet(
    events: EventLog, url: str, error: type[EverContextError]
) -> None:
    assert isinstance((await fetch(url, events, only_public=True)).error, error)


def test_addresses_of_version_6_that_carry_private_ones() -> None:
    assert is_public("93.184.215.14")
    assert is_public("2606:2800:21f:cb07::1")
    for address in ("::", "fe80::1%eth0", "fd00::1", "2002:7f00:1::", "64:ff9b::a00:1", "ff02::1"):
        assert not is_public(address), address


async def test_only_a_person_or_a_rule_for_the_site_lets_it_go(site: str, events: EventLog) -> None:
    """Not --yes, not `*`, not the plain gate of servers; deny wins."""
    tool = web_fetch_tool(FetchPolicy(lambda address: True))
    call = {"url": f"{site}/json"}

    async def result(gate: Gate) -> ToolResult:
        return await Toolbox([tool], events, gate).call("web_fetch", call, CALLER)

    def ruled(*texts: str) -> Gate:
        pairs = [text.split(" ", 1) for text in texts]
        return Gate(Permissions("/p", True, [parse(verdict, rule) for verdict, rule in pairs]))

    for gate in (Gate(), ruled(), ruled("allow *"), ruled("allow network")):
        assert isinstance((await result(gate)).error, ApprovalDenied)
    other = ruled(f"allow web_fetch({site}.evil.example/*)")
    assert isinstance((await result(other)).error, ApprovalDenied)
    allow = f"allow web_fetch({site}/*)"
    assert (await result(ruled(allow))).ok
    assert isinstance((await result(ruled(allow, "deny network"))).error, ApprovalDenied)
    assert [rule.text for rule in rules_for(tool, call)] == [f"web_fetch({site}/*)"]


async def test_plan_mode_has_none_and_the_trace_names_the_answer(
    site: str, events: EventLog
) -> None:
    seen: list[Event] = []
    events.subscribe(seen.append)
    await fetch(f"{site}/json", events)
    assert [event.body.access for event in seen if isinstance(event.body, Approval)] == ["network"]
    plan = Caller("t", Door.CHAT, Mode.PLAN)
    box = Toolbox([web_fetch_tool()], events)
    refused = await box.call("web_fetch", {"url": site}, plan)
    assert isinstance(refused.error, ModeRefused)
