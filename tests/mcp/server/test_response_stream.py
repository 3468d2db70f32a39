"""A response that became a stream: in order, bounded, and taken up again."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from evercontext.mcp.server.response_stream import (
    MOST_EVENTS,
    MOST_PENDING_PROGRESS,
    ResponseStream,
)


class Connection:
    """What a client of one connection receives."""

    def __init__(self) -> None:
        self.body = b""
        self.started = self.ended = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            return
        self.body += message["body"]
        self.ended = not message.get("more_body", False)


async def test_messages_come_before_the_response() -> None:
    client = Connection()
    stream = ResponseStream(client.send)
    assert not stream.has_begun
    stream.put(b'{"a":1}')
    await stream.finish(b'{"b":\n2}')
    assert client.ended
    assert client.body == b'event: message\ndata: {"a":1}\n\nevent: message\ndata: {"b": 2}\n\n'


async def test_a_slow_client_misses_progress_and_nothing_else() -> None:
    client = Connection()
    stream = ResponseStream(client.send)
    for number in range(MOST_PENDING_PROGRESS * 2):
        stream.put(b"p%d" % number, optional=True)
    stream.put(b"question")
    await stream.finish(b"result")
    assert client.body.count(b"data: p") == MOST_PENDING_PROGRESS
    assert client.body.endswith(b"data: question\n\nevent: message\ndata: result\n\n")


async def test_a_lost_stream_goes_on_after_the_last_event() -> None:
    """P16: no resumption by Last-Event-ID."""
    first, second = Connection(), Connection()
    stream = ResponseStream(first.send, "s1")
    stream.put(b"one")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stream.detach()
    stream.put(b"two")
    resuming = asyncio.create_task(stream.resume(second.send, 1))
    await asyncio.sleep(0)
    await stream.finish(b"three")
    await resuming
    assert first.body.startswith(b"id: s1-0\nretry: ")
    assert b"data: one" in first.body
    assert b"one" not in second.body
    assert second.body.endswith(
        b"id: s1-2\nevent: message\ndata: two\n\nid: s1-3\nevent: message\ndata: three\n\n"
    )
    again = Connection()
    await stream.resume(again.send, 2)
    assert b"data: three" in again.body


async def test_what_is_stored_is_bounded() -> None:
    client, later = Connection(), Connection()
    stream = ResponseStream(client.send, "s1")
    for number in range(MOST_EVENTS * 2):
        stream.put(b"m%d" % number)
    await stream.finish(b"end")
    await stream.resume(later.send, 0)
    assert later.body.count(b"data: m") == MOST_EVENTS - 1
