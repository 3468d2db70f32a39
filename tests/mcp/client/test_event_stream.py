"""Server-sent events in whatever pieces they come."""

from __future__ import annotations

import pytest

from evercontext.errors import ServerProblem
from evercontext.mcp.client.event_stream import EventStream

STREAM = (
    b": hello\r\n\r\nevent: endpoint\r\ndata: /a\r\n\r\ndata: one\ndata:two\nid: 7\n\nevent: x\n\n"
)
EVENTS = [("endpoint", b"/a"), ("message", b"one\ntwo")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_do_not_depend_on_the_pieces(size: int) -> None:
    stream = EventStream(1000)
    found = []
    for begin in range(0, len(STREAM), size):
        found += stream.feed(STREAM[begin : begin + size])
    assert found == EVENTS


@pytest.mark.case(89)
@pytest.mark.parametrize("part", [b"x" * 600, b"data: " + b"x" * 600 + b"\n"])
def test_an_event_without_end_is_refused(part: bytes) -> None:
    stream = EventStream(1000)
    stream.feed(part)
    with pytest.raises(ServerProblem, match="1000 bytes"):
        stream.feed(part)
