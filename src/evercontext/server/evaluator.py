"""The evaluator as an MCP server over WebSocket.

The official SDK has no such transport any more, so the protocol's few methods are spoken here. Each
connection goes connecting → initialised → running a tool …, and every change is an event (L19).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from evercontext import __version__
from evercontext.agent.task import new_trace_id
from evercontext.domain.error_codes import http_status, json_rpc_code
from evercontext.domain.event import EvaluationState, Event
from evercontext.domain.tool import Caller, Door, Mode, Tool
from evercontext.errors import ConfigError, EverContextError, InvalidArguments
from evercontext.events.log import EventLog
from evercontext.mcp import json_rpc
from evercontext.mcp.json_rpc import Call, RpcError
from evercontext.process.listening_ports import announced
from evercontext.server.auth import Addresses, Token, require_token_off_loopback
from evercontext.settings import Settings
from evercontext.tools.toolbox import Toolbox

PATH = "/mcp"
TOOLS = ("evaluate_document", "get_improvement_suggestions")
MOST_CALLS = 32
MOST_CONNECTIONS = 256
LARGEST_MESSAGE = 1_048_576
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


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
    hub = Hub(toolbox.only(TOOLS), events, settings)
    try:
        server = await serve(
            hub.serve,
            host,
            port,
            process_request=hub.admit,
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
    hub.port = server.sockets[0].getsockname()[1]
    try:
        with announced(settings.home, {bound.getsockname()[1] for bound in server.sockets}):
            yield server
    finally:
        server.close()
        await server.wait_closed()


class Hub:
    """Who is connected, and who may be."""

    def __init__(self, toolbox: Toolbox, events: EventLog, settings: Settings) -> None:
        self.toolbox, self.events = toolbox, events
        self.clients: set[Client] = set()
        self.port = settings.evaluator_port
        self._settings = settings
        self._token = Token.of(settings.token) if settings.token else None

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Check address, origin and token before anything is upgraded."""
        pairs = [(k.lower().encode(), v.encode("latin-1", "replace"))
                 for k, v in request.headers.raw_items()]  # fmt: skip
        settings = self._settings
        try:
            known = Addresses.of(settings.evaluator_host, self.port, settings.allowed_hosts)
            known.check(pairs)
            if self._token:
                self._token.check(pairs)
        except EverContextError as problem:
            return connection.respond(HTTPStatus(http_status(problem)), f"{problem}\n")
        if request.path.split("?")[0] != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, f"the evaluator is at {PATH}\n")
        if len(self.clients) >= MOST_CONNECTIONS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many clients\n")
        return None

    async def serve(self, connection: ServerConnection) -> None:
        """Look after one client from its connection to its close."""
        client = Client(connection, self.toolbox, self.events)
        self.clients.add(client)
        try:
            await client.run()
        finally:
            self.clients.discard(client)


class Client:
    """One connection: its state, its calls in flight."""

    def __init__(self, connection: ServerConnection, toolbox: Toolbox, events: EventLog) -> None:
        self._connection, self._toolbox, self._events = connection, toolbox, events
        self._trace_id = new_trace_id()
        self._ready = False
        self._calls: dict[json_rpc.Id, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Answer messages until the client goes; its running calls end with it."""
        self._state("connecting")
        try:
            async for message in self._connection:
                await self._take(message)
        except ConnectionClosed:
            pass
        finally:
            running = list(self._calls.values())
            for call in running:
                call.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._state("waiting")

    async def _take(self, message: str | bytes) -> None:
        try:
            call = json_rpc.parse(message)
        except RpcError as problem:
            await self._send(json_rpc.error(problem.id, problem))
            return
        if call is None:
            return
        if call.notification:
            self._notice(call)
        elif call.method == "tools/call":
            await self._start(call)
        else:
            await self._answer(call, lambda: self._now(call))

    async def _answer(self, call: Call, work: Callable[[], Any]) -> None:
        try:
            await self._send(json_rpc.result(call.id, work()))
        except RpcError as problem:
            await self._send(json_rpc.error(call.id, problem))

    def _now(self, call: Call) -> Any:
        """Methods that are answered at once."""
        if call.method == "initialize":
            return self._initialize(call.params)
        if call.method == "ping":
            return {}
        self._must_be_ready()
        if call.method == "tools/list":
            return {"tools": [_described(tool) for tool in self._toolbox.offered(Mode.AGENT)]}
        raise RpcError(json_rpc.METHOD_NOT_FOUND, f"there is no method {call.method[:80]}")

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        self._ready = True
        self._state("initialised")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "serverInfo": {"name": "evercontext-evaluator", "version": __version__},
            "capabilities": {"tools": {"listChanged": False}},
        }

    def _notice(self, call: Call) -> None:
        if call.method == "notifications/cancelled":
            running = self._calls.get(call.params.get("requestId"))
            if running:
                running.cancel()

    async def _start(self, call: Call) -> None:
        try:
            self._must_be_ready()
            if call.id in self._calls:
                raise RpcError(json_rpc.INVALID_REQUEST, "this id is already running")
            if len(self._calls) >= MOST_CALLS:
                raise RpcError(json_rpc.BUSY, f"{MOST_CALLS} calls are already running")
        except RpcError as problem:
            await self._send(json_rpc.error(call.id, problem))
            return
        task = asyncio.create_task(self._call(call))
        self._calls[call.id] = task
        task.add_done_callback(lambda _: self._calls.pop(call.id, None))

    async def _call(self, call: Call) -> None:
        caller = Caller(new_trace_id(), Door.MCP)
        told: list[asyncio.Task[None]] = []
        stop = self._events.subscribe(self._progress(call, caller.trace_id, told))
        self._state("running a tool", caller.trace_id)
        try:
            answer = json_rpc.result(call.id, await self._result(call, caller))
        except RpcError as problem:
            answer = json_rpc.error(call.id, problem)
        finally:
            stop()
        # Progress belongs before the answer: nothing may follow that.
        await asyncio.gather(*told)
        await self._send(answer)

    async def _result(self, call: Call, caller: Caller) -> dict[str, Any]:
        name, arguments = call.params.get("name"), call.params.get("arguments", {})
        if not isinstance(name, str):
            raise RpcError(json_rpc.INVALID_PARAMS, "name: which tool?")
        result = await self._toolbox.call(name, arguments, caller)
        if result.error is not None:
            wrong = isinstance(result.error, InvalidArguments)
            code = json_rpc.INVALID_PARAMS if wrong else json_rpc_code(result.error)
            raise RpcError(code, str(result.error), {"code": result.error.code})
        return {
            "content": [{"type": "text", "text": result.text}],
            "structuredContent": result.data,
            "isError": False,
        }

    def _progress(
        self, call: Call, trace_id: str, told: list[asyncio.Task[None]]
    ) -> Callable[[Event], None]:
        meta = call.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        steps = iter(range(1, 1_000_000))

        def tell(event: Event) -> None:
            body = event.body
            if token is None or event.trace_id != trace_id:
                return
            if isinstance(body, EvaluationState):
                step = {"progressToken": token, "progress": next(steps), "message": body.state}
                message = json_rpc.notification("notifications/progress", step)
                told.append(asyncio.create_task(self._send(message)))

        return tell

    def _must_be_ready(self) -> None:
        if not self._ready:
            raise RpcError(json_rpc.NOT_INITIALISED, "initialize first")

    async def _send(self, text: str) -> None:
        with suppress(ConnectionClosed):
            await self._connection.send(text)

    def _state(self, state: str, trace_id: str | None = None) -> None:
        self._events.emit(EvaluationState(state=state), trace_id=trace_id or self._trace_id)


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.arguments),
        "annotations": {"readOnlyHint": True},
    }
