"""Serve the evaluator over MCP by WebSocket.

Each connection goes connecting → initialised → running a tool …, and every change is an event
(L19).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request as UpgradeRequest
from websockets.http11 import Response
from websockets.typing import Subprotocol

from evercontext.agent.task import new_trace_id
from evercontext.domain.error_codes import http_status, json_rpc_code
from evercontext.domain.event import EvaluationState, Event
from evercontext.domain.tool import Caller, Door, Mode, Tool
from evercontext.errors import ConfigError, EverContextError, InvalidArguments
from evercontext.evaluation.evaluator import LARGEST
from evercontext.events.log import EventLog
from evercontext.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcError,
    RpcRequest,
    meta_of,
)
from evercontext.mcp.revisions import ServerInfo
from evercontext.mcp.server.websocket import WebSocketConnection, WebSocketContext
from evercontext.process.listening_ports import announced
from evercontext.server.token_check import Addresses, Token, require_token_off_loopback
from evercontext.settings import Settings
from evercontext.tools.toolbox import Toolbox

PATH = "/mcp"
TOOLS = ("evaluate_document", "get_improvement_suggestions")
MOST_CONNECTIONS = 256
SUBPROTOCOL = Subprotocol("mcp")
"""What the official clients ask for; those that ask for nothing are served as well."""
LARGEST_MESSAGE = 6 * LARGEST + 65_536
"""A character may be escaped in six bytes, so that the largest document fits in whatever form."""


@asynccontextmanager
async def open_evaluator(
    settings: Settings,
    toolbox: Toolbox,
    events: EventLog,
    *,
    open_seconds: float = 10.0,
    ping_seconds: float = 20.0,
) -> AsyncIterator[Server]:
    """Listen for evaluator clients until the block ends."""
    host, port = settings.evaluator_host, settings.evaluator_port
    require_token_off_loopback(host, settings.token)
    evaluator = EvaluatorServer(toolbox.only(TOOLS), events, settings)
    try:
        server = await serve(
            evaluator.serve,
            host,
            port,
            process_request=evaluator.admit,
            select_subprotocol=_choose_subprotocol,
            max_size=LARGEST_MESSAGE,
            open_timeout=open_seconds,
            ping_interval=ping_seconds,
            ping_timeout=ping_seconds,
            close_timeout=2,
            server_header=None,
        )
    except OSError as problem:
        raise ConfigError(
            f"the evaluator cannot listen on {host}:{port}: {problem.strerror}",
            fix="End what uses the port, or set MCP_PORT",
        ) from None
    evaluator.port = server.sockets[0].getsockname()[1]
    try:
        with announced(settings.home, {bound.getsockname()[1] for bound in server.sockets}):
            yield server
    finally:
        server.close()
        await server.wait_closed()


def _choose_subprotocol(
    connection: ServerConnection, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    return SUBPROTOCOL if SUBPROTOCOL in offered else None


class EvaluatorServer:
    """Admits connections and serves each of them."""

    def __init__(self, toolbox: Toolbox, events: EventLog, settings: Settings) -> None:
        self._events = events
        self._offer = EvaluatorOffer(toolbox, events)
        self.port = settings.evaluator_port
        self._settings = settings
        self._token = Token.of(settings.token) if settings.token else None
        self._connections = 0

    def admit(self, connection: ServerConnection, request: UpgradeRequest) -> Response | None:
        """Check address, origin and token before the upgrade; return a refusal or ``None``."""
        headers = [
            (name.lower().encode(), value.encode("latin-1", "replace"))
            for name, value in request.headers.raw_items()
        ]
        settings = self._settings
        try:
            addresses = Addresses.of(settings.evaluator_host, self.port, settings.allowed_hosts)
            addresses.check(headers)
            if self._token:
                self._token.check(headers)
        except EverContextError as problem:
            return connection.respond(HTTPStatus(http_status(problem)), f"{problem}\n")
        if request.path.split("?")[0] != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, f"the evaluator is at {PATH}\n")
        if self._connections >= MOST_CONNECTIONS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many clients\n")
        return None

    async def serve(self, connection: ServerConnection) -> None:
        """Serve one client from its connection to its close."""
        trace_id = new_trace_id()

        def emit(state: str) -> None:
            self._events.emit(EvaluationState(state=state), trace_id=trace_id)

        self._connections += 1
        emit("connecting")
        try:
            await WebSocketConnection(connection, self._offer, lambda: emit("initialised")).serve()
        finally:
            self._connections -= 1
            emit("waiting")


class EvaluatorOffer:
    """The tools of the evaluator, offered to MCP clients."""

    info = ServerInfo("evercontext-evaluator", {"tools": {"listChanged": False}})

    def __init__(self, toolbox: Toolbox, events: EventLog) -> None:
        self._toolbox, self._events = toolbox, events

    async def answer(self, request: RpcRequest, context: WebSocketContext) -> dict[str, Any]:
        """List the tools, or call one and report its progress."""
        if request.method == "tools/list":
            return {"tools": [_describe(tool) for tool in self._toolbox.offered(Mode.AGENT)]}
        if request.method != "tools/call":
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {request.method[:80]}")
        caller = Caller(new_trace_id(), Door.MCP)
        unsubscribe = self._events.subscribe(_progress(request, context, caller.trace_id))
        self._events.emit(EvaluationState(state="running a tool"), trace_id=caller.trace_id)
        try:
            return await self._call(request, caller)
        finally:
            unsubscribe()

    async def _call(self, request: RpcRequest, caller: Caller) -> dict[str, Any]:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "name: which tool?")
        result = await self._toolbox.call(name, arguments, caller)
        if result.error is not None:
            invalid = isinstance(result.error, InvalidArguments)
            code = INVALID_PARAMS if invalid else json_rpc_code(result.error)
            raise RpcError(code, str(result.error), {"code": result.error.code})
        return {
            "content": [{"type": "text", "text": result.text}],
            "structuredContent": result.data,
            "isError": False,
        }


def _progress(
    request: RpcRequest, context: WebSocketContext, trace_id: str
) -> Callable[[Event], None]:
    """Return a subscriber that reports the states of one evaluation to its client."""
    token = meta_of(request.params).get("progressToken")
    steps = itertools.count(1)

    def report(event: Event) -> None:
        if token is None or event.trace_id != trace_id:
            return
        if isinstance(event.body, EvaluationState):
            step = {"progressToken": token, "progress": next(steps), "message": event.body.state}
            context.notify("notifications/progress", step)

    return report


def _describe(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.arguments),
        "annotations": {"readOnlyHint": True},
    }
