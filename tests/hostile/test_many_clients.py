"""One client's work and another's wait: the gateway answers everybody while somebody is hostile."""

from __future__ import annotations

import json
import select
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evercontext.errors import EditMismatch
from evercontext.workspace.search_and_replace import Edit, apply_edits
from mcp import Client
from tests.server.running import Gateway, receive, running, status_of

FILES = 3000


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("crowd")
    large = place / "root" / "large"
    large.mkdir(parents=True)
    for number in range(FILES):
        (large / f"{number}.txt").write_text("hello world\n" * 300)
    with running(place / "root", place / "home") as gateway:
        yield gateway


@contextmanager
def asked(gateway: Gateway, number: int, directory: str = "large") -> Iterator[list[socket.socket]]:
    """Send searches that take a while, and do not wait for their answers."""
    search = request(gateway, "search_files", {"directory": directory, "keyword": "not there"})
    with ExitStack() as stack:
        links = [stack.enter_context(gateway.connect()) for _ in range(number)]
        for link in links:
            link.sendall(search)
        yield links


def request(gateway: Gateway, route: str, arguments: dict[str, Any]) -> bytes:
    body = json.dumps(arguments).encode()
    head = f"POST /{route} HTTP/1.1\r\nhost: {gateway.host}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def unanswered(links: list[socket.socket]) -> int:
    return len(links) - len(select.select(links, [], [], 0)[0])


async def edit(gateway: Gateway, path: str, edits: list[dict[str, Any]]) -> Any:
    async with Client(f"{gateway.url}/mcp", read_timeout_seconds=120) as client:
        await client.call_tool("read_file", {"path": path})
        return await client.call_tool("edit_file", {"path": path, "edits": edits})


def test_searches_do_not_keep_a_write_waiting(gateway: Gateway) -> None:
    """X10: a write went behind 24 searches and took 40 seconds."""
    write = {"path": "w.txt", "content": "w", "mode": "overwrite"}
    with gateway.connect() as link, ExitStack() as stack:
        with gateway.paused():
            links = stack.enter_context(asked(gateway, 24))
            link.sendall(request(gateway, "write_file", write))
        assert status_of(receive(link, 120)) == 200
        assert unanswered(links) > 12
        assert {status_of(receive(link, 120)) for link in links} == {200}


def test_abandoned_searches_stop_and_leave_their_line(gateway: Gateway) -> None:
    """X10: whoever goes away is not searched for, and the audit says so."""
    before = len(gateway.audit())
    with gateway.paused(), asked(gateway, 40):
        pass
    answer = gateway.post("search_files", {"directory": "large", "keyword": "not there"})
    assert answer.json() == {"result": []}
    while len(lines := gateway.audit()[before:]) < 41:
        time.sleep(0.02)
    assert Counter(line["status"] for line in lines) == {499: 40, 200: 1}


def test_a_crowd_of_searches_is_told_to_come_back(gateway: Gateway) -> None:
    """X10: what cannot be done soon is refused, not queued without end."""
    with ExitStack() as stack:
        with gateway.paused():
            links = stack.enter_context(asked(gateway, 120))
        answers = [receive(link, 120) for link in links]
    statuses = [status_of(answer) for answer in answers]
    assert set(statuses) == {200, 503}
    refused = next(answer for answer in answers if status_of(answer) == 503)
    head, _, body = refused.partition(b"\r\n\r\n")
    assert b"retry-after: 1" in head.lower()
    assert json.loads(body)["error"]["code"] == "busy"
    assert gateway.post("read_file", {"path": "large/1.txt"}).status_code == 200


async def test_a_chain_of_edits_cannot_grow_past_the_limit_in_between(gateway: Gateway) -> None:
    """X8: a kilobyte of edits made gigabytes, though its end was small again."""
    target = gateway.root / "grow.txt"
    target.write_text("a")
    grow = [{"old": "a", "new": "a" * 8, "replace_all": True}] * 7
    shrink = [{"old": "a" * 8, "new": "a", "replace_all": True}] * 7
    refused = await edit(gateway, "grow.txt", [*grow, *shrink])
    assert refused.structured_content["error"]["code"] == "too_large"
    assert "edit 7 of 14" in refused.structured_content["error"]["message"]
    assert target.read_text() == "a"
    assert not (await edit(gateway, "grow.txt", [*grow[:6], *shrink[:6]])).is_error
    assert target.read_text() == "a"


async def test_many_places_are_replaced_at_once(gateway: Gateway) -> None:
    """X8: replacing 78,000 commas took three seconds, and everybody waited."""
    target = gateway.root / "commas.txt"
    target.write_text("," * 59_000)
    more = [{"old": ",", "new": ",,", "replace_all": True}] * 2
    done = await edit(gateway, "commas.txt", [*more, {"old": ",", "new": ";", "replace_all": True}])
    assert done.content[0].text.endswith("edit 3 at line 1 (236000 places)")
    assert target.read_text() == ";" * 236_000


async def test_too_many_edits_are_refused_unread(gateway: Gateway) -> None:
    (gateway.root / "many.txt").write_text("a")
    edits = [{"old": "a", "new": "b"}, {"old": "b", "new": "a"}] * 501
    refused = await edit(gateway, "many.txt", edits)
    assert refused.structured_content["error"]["code"] == "invalid_arguments"


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("x\n" * 200_000, "x \n" * 100_000 + "y"),
        (" x\n" * 200_000, "x\n" * 99_999 + "  y"),
        ("".join(f"{'  ' * (n % 2)}x\n" for n in range(200_000)), " x\n" * 50_000 + " x"),
        ("a" * 400_000, "a" * 4000 + "b\n" * 4000),
        ("ab " * 100_000, "ba " * 1300),
    ],
    ids=["spaces", "indented", "shifted", "letters", "words"],
)
def test_a_text_that_is_almost_there_is_refused_soon(text: str, old: str) -> None:
    """X8: each of these compared every line with every line, for minutes or hours."""
    with pytest.raises(EditMismatch):
        apply_edits(text, [Edit(old, "z")])


def test_a_long_line_after_dots_is_no_placeholder() -> None:
    """X8: the pattern took the square of the spaces in a line."""
    text, _ = apply_edits("a\n", [Edit("a", "..." + " " * 500_000 + "x")])
    assert len(text) == 500_005


@pytest.mark.slow
def test_the_server_ends_while_it_searches(tmp_path: Path) -> None:
    """X8: SIGTERM was ignored while somebody's work went on."""
    (tmp_path / "root").mkdir()
    for number in range(FILES):
        (tmp_path / "root" / f"{number}.txt").write_text("hello\n" * 500)
    with (
        running(tmp_path / "root", tmp_path / "home") as gateway,
        asked(gateway, 60, ".") as links,
    ):
        assert gateway.stop() == 143
        assert {status_of(receive(link)) for link in links} <= {0, 200, 503}
