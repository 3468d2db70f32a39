"""Serve clients over WebSocket. The official SDK has no such transport any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from evercontext.mcp.messages import (
    BUSY,
    INVALID_REQUEST,
    NOT_INITIALIZED,
    Id,
    Params,
    RpcError,
    RpcRequest,
    RpcResponse,
    encode_error,
    encode_notification,
    parse_message,
)
from evercontext.mcp.server import dispatcher
from evercontext.mcp.server.dispatcher import Answer, Offer, cancelled_id, respond

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

MOST_CALLS = 32
"""Tool calls that may run at a time over one connection."""
_LARGE = 262_144


class WebSocketContext:
    """Sends notifications about one request, all of them before its response."""

    def __init__(self, send: Callable[[bytes], Any]) -> None:
        self._send = send
        self._sending: list[asyncio.Task[None]] = []

    def notify(self, method: str, params: Params) -> None:
        """Send a notification to the client."""
        message = encode_notification(method, params)
        self._sending.append(asyncio.create_task(self._send(message)))

    async def flush(self) -> None:
        """Wait until every notification is sent."""
        await asyncio.gather(*self._sending)


class WebSocketConnection:
    """One client: the handshake first, then requests; tool calls run side by side."""

    def __init__(
        self,
        socket: ServerConnection,
        offer: Offer[WebSocketContext],
        on_initialized: Callable[[], None],
    ) -> None:
        self._socket, self._offer, self._on_initialized = socket, offer, on_initialized
        self._initialized = False
        self._calls: dict[Id, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer messages until the client leaves; its running calls end with it."""
        from websockets.exceptions import ConnectionClosed

        try:
            async for message in self._socket:
                await self._receive(message)
        except ConnectionClosed:
            pass
        finally:
            running = list(self._calls.values())
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _receive(self, message: str | bytes) -> None:
        try:
            # A large document takes a moment to parse, in which others want to be served.
            large = len(message) > _LARGE
            request = (
                await asyncio.to_thread(parse_message, message) if large else parse_message(message)
            )
        except RpcError as error:
            await self._send(encode_error(error.id, error))
            return
        if isinstance(request, RpcResponse):
            return
        if request.is_notification:
            if (running := self._calls.get(cancelled_id(request))) is not None:
                running.cancel()
        elif request.method == "tools/call":
            await self._start_call(request)
        else:
            await self._respond(request)

    async def _start_call(self, request: RpcRequest) -> None:
        try:
            self._check_initialized()
            if request.id in self._calls:
                raise RpcError(INVALID_REQUEST, "this id is already running")
            if len(self._calls) >= MOST_CALLS:
                raise RpcError(BUSY, f"{MOST_CALLS} calls are already running")
        except RpcError as error:
            await self._send(encode_error(request.id, error))
            return
        task = asyncio.create_task(self._respond(request))
        self._calls[request.id] = task
        task.add_done_callback(lambda _: self._calls.pop(request.id, None))

    async def _respond(self, request: RpcRequest) -> None:
        context = WebSocketContext(self._send)
        answer = self._answer(request, context)
        response = await respond(request, answer, stateless=False, surrogates="replace")
        # Nothing may follow the response, so progress is sent before it.
        await context.flush()
        await self._send(response)

    async def _answer(self, request: RpcRequest, context: WebSocketContext) -> Answer:
        if request.method == "initialize":
            self._initialized = True
            self._on_initialized()
        elif request.method != "ping":
            self._check_initialized()
        return await dispatcher.answer(self._offer, request, context)

    def _check_initialized(self) -> None:
        if not self._initialized:
            raise RpcError(NOT_INITIALIZED, "initialize first")

    async def _send(self, message: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            await self._socket.send(message.decode("utf-8"))
