"""The tool router over Streamable HTTP: two tools, a token and a project for every call.

Plain ASGI and JSON: every POST stands for itself, in either era of the protocol. Nothing is
remembered between two of them but which calls are running, so that they can be taken back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import Any

from evercontext.access.projects import Projects
from evercontext.access.tokens import Tokens
from evercontext.app import EverContext
from evercontext.app.picking import Picker
from evercontext.app.routing import cloud_of, strategy_in
from evercontext.catalog.card import Card
from evercontext.catalog.servers import NOTHING, Aside
from evercontext.catalog.servers import Scope as Sight
from evercontext.catalog.shelves import Shelves
from evercontext.catalog.tools import EXECUTE, META, Catalog
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, ToolResult
from evercontext.errors import (
    ConfigError,
    EverContextError,
    MethodRefused,
    NoSuchRoute,
)
from evercontext.server import catalog_search, eras, json_rpc
from evercontext.server.answers import encode
from evercontext.server.asgi import (
    BODY,
    ROUTE,
    App,
    Audited,
    Bounded,
    Guarded,
    Receive,
    Scope,
    Send,
    answer_error,
    note_of,
    printable,
)
from evercontext.server.auth import Addresses, is_loopback
from evercontext.server.catalog_search import CatalogSearch
from evercontext.server.doors import at_the_router
from evercontext.server.json_rpc import RpcError
from evercontext.server.metrics import Metrics
from evercontext.server.router_answers import as_mcp, direct_name, line_of, shown
from evercontext.server.serve import Listener, bind, connection_class
from evercontext.server.status import JSON_RPC_UNAUTHORIZED, json_rpc_code
from evercontext.server.telling import Telling
from evercontext.server.visitors import (
    SESSION,
    Doorkeeper,
    Headers,
    Refused,
    Visitor,
    bearer,
    single_headers,
)
from evercontext.server.watch import Watches
from evercontext.tools.toolbox import Toolbox

LARGEST_BODY = 4 * 1024 * 1024
_NEEDS_NOBODY = frozenset({"initialize", "ping", "server/discover"})
"""Says nothing about tools: a client whose token comes with each call must get this far."""
_LISTS = {
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources/templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}


class Router:
    """Answers ``POST /mcp``."""

    def __init__(self, app: EverContext, picker: Picker) -> None:
        self._events = app.events
        projects = Projects(app.store)
        self._door = Doorkeeper(Tokens(app.store), projects, open_house=app.settings.router_open)
        self._search = CatalogSearch(self._door, picker)
        self._visits: dict[str, tuple[Sight, Aside]] = {}
        self._number = 0
        self._watches = Watches()
        self._running: dict[tuple[str, json_rpc.Id], asyncio.Task[Any]] = {}
        self._strategy_of = strategy_in(projects)
        servers = app.catalog.servers
        self._shelves = Shelves(servers)
        self._catalog = Catalog(
            servers, self._sight_of, self._strategy_of, cloud_of(app.settings), self._aside_of
        )
        commands = app.settings.allow_commands
        self._toolbox: Toolbox = at_the_router(app.toolbox, self._catalog, allow_commands=commands)

    async def _sight_of(self, caller: Caller) -> Sight:
        return self._visits[caller.session or ""][0]

    def _aside_of(self, caller: Caller) -> Aside:
        return self._visits[caller.session or ""][1]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] not in ("/mcp", catalog_search.PATH):
            error = NoSuchRoute(f"there is only /mcp, and {catalog_search.PATH}")
            await answer_error(send, error, note_of(scope).trace_id)
            return
        scope[ROUTE] = scope["path"]
        if scope["method"] != "POST":
            refusal = MethodRefused("only POST is answered here")
            await answer_error(send, refusal, note_of(scope).trace_id)
            return
        if scope["path"] == catalog_search.PATH:
            await self._search(scope, send)
            return
        watch = self._watches.begin(receive)
        try:
            await _Question(self, scope, send).answer()
        except asyncio.CancelledError:
            if not watch.gone:
                raise
            # The client went away, and with it the reason to go on.
        finally:
            watch.end()

    async def method(self, call: json_rpc.Call, question: _Question) -> dict[str, Any] | bytes:
        """Answer one method; bytes are a whole answer already."""
        if call.method in _NEEDS_NOBODY and not bearer(question.headers):
            return self._greeting(call, question, None)
        visitor = await self._door.visitor(question.headers, call.params)
        note_of(question.scope).principal = visitor.token
        if call.method in _NEEDS_NOBODY:
            return self._greeting(call, question, visitor.token)
        if call.method == "tools/list":
            return {"tools": await self._list(visitor)}
        if call.method == "tools/call":
            return await self._tool(call, visitor, question)
        if call.method in _LISTS:
            what, field = _LISTS[call.method]
            return {field: await self._shelves.list(what, visitor.sight)}
        if call.method in ("resources/read", "prompts/get"):
            return await self._fetch(call, visitor, question)
        if call.method == "logging/setLevel":
            return {}
        message = f"{printable(call.method, 80)} is not offered here"
        raise RpcError(json_rpc.METHOD_NOT_FOUND, message)

    def _greeting(
        self, call: json_rpc.Call, question: _Question, token: str | None
    ) -> dict[str, Any]:
        if call.method == "ping":
            return {}
        if call.method == "server/discover":
            return eras.discovered()
        question.session = self._door.sessions.issue(token)
        return eras.hello(call.params)

    async def told(self, call: json_rpc.Call, headers: Headers) -> None:
        """Take a notification: only the one that takes a call back means anything here."""
        if call.method != "notifications/cancelled":
            return
        visitor = await self._door.visitor(headers, call.params)
        id = call.params.get("requestId")
        task = self._running.get((visitor.session, id)) if isinstance(id, str | int) else None
        if task is not None and visitor.session:
            task.cancel()

    async def _list(self, visitor: Visitor) -> list[dict[str, Any]]:
        if await self._strategy_of(visitor.sight) is not None:
            return [shown(tool.name, tool) for tool in self._catalog.tools()]
        return [shown(direct_name(card), card) for card in await self._cards(visitor)]

    async def _cards(self, visitor: Visitor) -> list[Card]:
        with self._visit(visitor, NOTHING) as session:
            caller = Caller("list", Door.MCP, session=session, road=self._toolbox)
            return await self._catalog.cards(caller)

    def _visit(self, visitor: Visitor, aside: Aside) -> _Visit:
        self._number += 1
        return _Visit(self._visits, f"visit {self._number}", (visitor.sight, aside))

    async def _fetch(
        self, call: json_rpc.Call, visitor: Visitor, question: _Question
    ) -> dict[str, Any]:
        wanted = call.params.get("uri" if call.method == "resources/read" else "name")
        if not isinstance(wanted, str):
            raise RpcError(json_rpc.INVALID_PARAMS, "say what is wanted")
        given = call.params.get("arguments", {})
        started = time.monotonic()
        answer = await (
            self._shelves.read(wanted, visitor.sight)
            if call.method == "resources/read"
            else self._shelves.get(wanted, given if isinstance(given, dict) else {}, visitor.sight)
        )
        if answer is None:
            raise RpcError(json_rpc.INVALID_PARAMS, f"there is no {printable(wanted, 140)!r}")
        result = ToolResult(text="", data=answer.value)
        question.record(call, call.method, wanted, visitor, result, started)
        return dict(answer.value)

    async def _tool(
        self, call: json_rpc.Call, visitor: Visitor, question: _Question
    ) -> dict[str, Any] | bytes:
        name, given = call.params.get("name"), call.params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(given, dict):
            raise RpcError(json_rpc.INVALID_PARAMS, "a call has a name and arguments")
        if name not in META:
            name, given = EXECUTE, {"toolKey": await self._key(name, visitor), "arguments": given}
        trace_id, started = note_of(question.scope).trace_id, time.monotonic()
        principal = Principal(project=visitor.sight.project, token=visitor.token)
        running = (visitor.session, call.id)
        if visitor.session and (task := asyncio.current_task()) is not None:
            self._running[running] = task
        try:
            with self._visit(visitor, question.aside(call)) as session:
                caller = Caller(trace_id, Door.MCP, principal=principal, session=session)
                result = await self._toolbox.call(name, given, caller)
        finally:
            self._running.pop(running, None)
        question.record(call, name, given.get("toolKey"), visitor, result, started)
        return as_mcp(call.id, result, trace_id, question.stateless)

    async def _key(self, name: str, visitor: Visitor) -> str:
        """The key behind a name of the whole list; only there are tools called directly."""
        if await self._strategy_of(visitor.sight) is None:
            for card in await self._cards(visitor):
                if direct_name(card) == name:
                    return card.key
        raise RpcError(json_rpc.INVALID_PARAMS, f"there is no tool {name[:80]!r}")

    def emit(self, line: Audit, trace_id: str) -> None:
        """Record a call whose answer has begun already."""
        self._events.emit_audited(line, trace_id=trace_id)


class _Question:
    """One POST: what it says, and how it is answered."""

    def __init__(self, router: Router, scope: Scope, send: Send) -> None:
        self._router, self.scope, self._send = router, scope, send
        self.headers = single_headers(scope["headers"])
        self.stateless = False
        self.session: str | None = None
        self._telling = Telling(send, None)

    async def answer(self) -> None:
        """Answer it."""
        status, body = await self._answered()
        extra = [(SESSION, self.session.encode())] if self.session and status == 200 else []
        await self._telling.finish(status, body, extra)

    async def _answered(self) -> tuple[int, bytes]:
        id: json_rpc.Id = None
        try:
            call = json_rpc.parse(self.scope[BODY])
            if call is None:
                return 202, b""
            id = call.id
            if call.notification:
                await self._router.told(call, self.headers)
                return 202, b""
            version = self.headers.get(b"mcp-protocol-version", b"").decode("latin-1")
            self.stateless = eras.is_stateless(call, version)
            if self.stateless:
                eras.check_envelope(call, self.headers)
            result = await self._router.method(call, self)
        except Refused as refusal:
            unauthorized = RpcError(JSON_RPC_UNAUTHORIZED, str(refusal))
            return refusal.status, json_rpc.error(id, unauthorized).encode()
        except EverContextError as error:
            told = RpcError(json_rpc_code(error), str(error))
            return 200, json_rpc.error(id, told).encode()
        except RpcError as problem:
            broken = problem.code in (json_rpc.PARSE_ERROR, json_rpc.INVALID_REQUEST)
            status = 400 if broken else eras.status_of(problem, self.stateless)
            return status, json_rpc.error(id, problem).encode()
        if isinstance(result, bytes):
            return 200, result
        whole = eras.completed(call.method, result) if self.stateless else result
        return 200, encode({"jsonrpc": "2.0", "id": id, "result": whole})

    def aside(self, call: json_rpc.Call) -> Aside:
        """What goes along with a call: who hears of its progress, what a client was asked for."""
        meta = eras.meta_of(call.params)
        token = meta.get("progressToken")
        streams = b"text/event-stream" in self.headers.get(b"accept", b"")
        if streams and isinstance(token, str | int) and not isinstance(token, bool):
            self._telling = Telling(self._send, token)
        if not self.stateless and not self._telling.wanted:
            return NOTHING
        hear = self._telling.hear if self._telling.wanted else None
        return Aside(hear, _continued(call.params) if self.stateless else {})

    def record(
        self,
        call: json_rpc.Call,
        name: str,
        what: Any,
        visitor: Visitor,
        result: ToolResult,
        started: float,
    ) -> None:
        """Leave the line of the audit; a stream has begun without it, so it comes after."""
        spent = round((time.monotonic() - started) * 1000)
        line = line_of(call, name, what, visitor, result, spent)
        note = note_of(self.scope)
        if note.settled:
            self._router.emit(line, note.trace_id)
        else:
            note.call = line


class _Visit:
    """What a caller may see, for the time of one request."""

    def __init__(
        self, visits: dict[str, tuple[Sight, Aside]], name: str, what: tuple[Sight, Aside]
    ) -> None:
        self._visits, self._name, self._what = visits, name, what

    def __enter__(self) -> str:
        self._visits[self._name] = self._what
        return self._name

    def __exit__(self, *_: object) -> None:
        del self._visits[self._name]


def _continued(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a stateless client brings when it comes back with what a server asked for."""
    answers = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
    able = eras.meta_of(params).get(eras.CAPABILITIES_KEY)
    return {**answers, "_meta": {eras.CAPABILITIES_KEY: able}}


@asynccontextmanager
async def open_router(app: EverContext) -> AsyncIterator[Listener]:
    """Bind the router's address and make what answers there."""
    settings = app.settings
    if settings.router_open and not is_loopback(settings.host):
        fix = "Unset EC_ROUTER_OPEN, or listen on 127.0.0.1"
        raise ConfigError("a router without tokens must not be reached by other machines", fix=fix)
    async with AsyncExitStack() as stack:
        bound = stack.enter_context(closing(bind(settings.host, settings.router_port)))
        addresses = Addresses.of(settings.host, bound.getsockname()[1], settings.allowed_hosts)
        models = await stack.enter_async_context(AsyncExitStack())
        bounded: App = Bounded(Router(app, Picker(settings, models)), LARGEST_BODY)
        guarded = Guarded(bounded, addresses, None, frozenset())
        door = Audited(guarded, app.events, Metrics())
        yield Listener(door, bound, connection_class(app.events, token=not settings.router_open))
