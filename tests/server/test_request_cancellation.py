"""Work for a client ends when the client disconnects."""

from __future__ import annotations

import asyncio

from evercontext.domain.tool import ToolResult
from evercontext.errors import Cancelled, Terminated
from evercontext.server.request_cancellation import Disconnect


async def test_work_is_stopped_when_its_client_disconnects() -> None:
    disconnect, began = Disconnect(), asyncio.Event()

    async def work() -> ToolResult:
        began.set()
        await asyncio.Event().wait()
        return ToolResult("done")

    working = asyncio.create_task(disconnect.unless_disconnected(work()))
    await began.wait()
    assert disconnect.is_working
    disconnect.disconnected()
    assert type((await working).error) is Cancelled
    assert not disconnect.is_working


async def test_work_for_a_client_that_disconnected_before_does_not_begin() -> None:
    """A search was made for a client that was gone before its request was read."""
    disconnect, begun = Disconnect(), list[str]()

    async def work() -> ToolResult:
        begun.append("searching")
        return ToolResult("done")

    disconnect.disconnected()
    result = await disconnect.unless_disconnected(work())
    assert type(result.error) is Cancelled
    assert begun == []


async def test_all_that_only_reads_is_stopped_when_the_server_ends() -> None:
    disconnects = [Disconnect() for _ in range(3)]
    began = [asyncio.Event() for _ in disconnects]

    async def work(event: asyncio.Event) -> ToolResult:
        event.set()
        await asyncio.Event().wait()
        return ToolResult("done")

    working = [
        asyncio.create_task(disconnect.unless_disconnected(work(event)))
        for disconnect, event in zip(disconnects, began, strict=True)
    ]
    for event in began:
        await event.wait()
    Disconnect.end_all()
    assert {type((await task).error) for task in working} == {Terminated}
