"""Serve the one client at stdin and stdout, which started this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from evercontext.domain.caller_scope import Hear
from evercontext.mcp.messages import (
    INTERNAL_ERROR,
    Id,
    Params,
    RpcError,
    RpcRequest,
    RpcResponse,
    encode_error,
    encode_notification,
    one_line,
    parse_message,
)
from evercontext.mcp.server.client_sessions import ClientState
from evercontext.mcp.server.dispatcher import cancelled_id
from evercontext.mcp.server.response_stream import MOST_PENDING_PROGRESS
from evercontext.process.stdin import read_lines


class StdioServer:
    """Answers each line of stdin in a task of its own.

    ``respond`` returns the response to a request; ``notified`` takes a notification. A request
    that the client cancels gets no response. Nothing that was received after ``initialize`` is
    answered before it.
    """

    def __init__(
        self,
        respond: Callable[[RpcRequest], Awaitable[bytes]],
        notified: Callable[[RpcRequest], None],
    ) -> None:
        self._respond, self._notified = respond, notified
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._greeting: asyncio.Task[None] | None = None
        """The first ``initialize``, while it is being answered."""
        self._held: list[bytes] = []
        """What waits until that is answered."""
        self.state = ClientState()

    async def serve(self) -> None:
        """Serve until the client closes the pipe; requests sent by then are answered first."""
        writing = asyncio.create_task(self._write_lines())
        try:
            async for line in read_lines():
                if line.strip():
                    self._receive(line)
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._lines.put_nowait(None)
            await writing

    @property
    def key(self) -> str:
        """The name of the only client."""
        return "stdio"

    def notify(self, method: str, params: Params) -> None:
        """Send a notification to the client, unless it is one it does not want."""
        if self.state.takes(method, params):
            self._send(encode_notification(method, params))

    async def ask(self, method: str, params: Params) -> dict[str, Any]:
        """Send a request to the client and return what it answers."""
        return await self.state.ask(method, params, self._send)

    def progress_to(self, token: str | int) -> Hear:
        """Return what passes progress on to the client, under the client's token."""

        def pass_on(params: dict[str, Any]) -> None:
            # Only the latest progress matters: a client that reads slowly misses some.
            if self._lines.qsize() < MOST_PENDING_PROGRESS:
                self.notify("notifications/progress", {**params, "progressToken": token})

        return pass_on

    def _receive(self, line: bytes) -> None:
        try:
            request = parse_message(line)
        except RpcError as error:
            self._send(encode_error(error.id, error))
            return
        if isinstance(request, RpcResponse):
            self.state.receive(request)
            return
        if request.is_notification:
            if (running := self._running.get(cancelled_id(request))) is not None:
                running.cancel()
            self._notified(request)
            return
        task = asyncio.create_task(self._answer(request))
        if request.method == "initialize" and self._greeting is None:
            self._greeting = task
        self._tasks.add(task)
        self._running[request.id] = task
        task.add_done_callback(lambda done: self._ended(request.id, done))

    async def _answer(self, request: RpcRequest) -> None:
        response = await self._respond(request)
        if asyncio.current_task() is self._greeting:
            self._lines.put_nowait(one_line(response) + b"\n")
        else:
            self._send(response)

    def _ended(self, id: Id, task: asyncio.Task[None]) -> None:
        if task is self._greeting:
            self._greeting = None
            for line in self._held:
                self._lines.put_nowait(line)
            self._held.clear()
        self._tasks.discard(task)
        if self._running.get(id) is task:
            del self._running[id]
        if not task.cancelled() and task.exception() is not None:
            # Without a response the client would wait for ever.
            self._send(encode_error(id, RpcError(INTERNAL_ERROR, "the router failed at this")))

    def _send(self, message: bytes) -> None:
        line = one_line(message) + b"\n"
        if self._greeting is not None:
            self._held.append(line)
        else:
            self._lines.put_nowait(line)

    async def _write_lines(self) -> None:
        """Write line after line; a client that does not read delays only its own responses."""
        while (line := await self._lines.get()) is not None:
            try:
                await asyncio.to_thread(_write, line)
            except OSError:
                # The client is gone; the end of stdin follows.
                return


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
