"""The tool router over Streamable HTTP: two tools, a token and a project for every call.

Plain ASGI and JSON: every POST stands for itself, in either era of the protocol. Nothing is
remembered between two of them but which calls are running, so that they can be taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from typing import Any

from evercontext.access.access_tokens import Tokens
from evercontext.access.router_projects import Projects
from evercontext.app import EverContext
from evercontext.app.models import open_picking_model
from evercontext.catalog.picker import Picker
from evercontext.domain.caller_scope import Hear
from evercontext.domain.error_codes import JSON_RPC_UNAUTHORIZED, json_rpc_code
from evercontext.domain.event import Audit
from evercontext.errors import (
    ConfigError,
    EverContextError,
    MethodRefused,
    NoSuchRoute,
)
from evercontext.mcp import json_rpc, revisions
from evercontext.mcp.json_rpc import RpcError
from evercontext.process.listening_ports import announced
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
)
from evercontext.server.auth import Addresses, is_loopback
from evercontext.server.disconnect_watcher import Watches
from evercontext.server.metrics import Metrics
from evercontext.server.router import catalog_search
from evercontext.server.router.authentication import (
    SESSION,
    Doorkeeper,
    Headers,
    Refused,
    bearer,
    single_headers,
)
from evercontext.server.router.catalog_search import CatalogSearch
from evercontext.server.router.offer import Offer
from evercontext.server.router.results import whole
from evercontext.server.serve import Listener, bind, connection_class
from evercontext.server.telling import Telling

LARGEST_BODY = 4 * 1024 * 1024


class Router:
    """Answers ``POST /mcp``."""

    def __init__(self, app: EverContext, picker: Picker) -> None:
        self._events = app.events
        projects = Projects(app.store)
        settings = app.settings
        self._door = Doorkeeper(
            Tokens(app.store),
            projects,
            settings.root,
            open_house=settings.router_open,
            renamed=app.memory.carry_over,
        )
        self._search = CatalogSearch(self._door, picker)
        self._offer = Offer(app)
        self._watches = Watches()
        self._running: dict[tuple[str, json_rpc.Id], asyncio.Task[Any]] = {}

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
        if call.method in revisions.GREETINGS and not bearer(question.headers):
            return self._greeting(call, question, None)
        visitor = await self._door.visitor(question.headers, call.params)
        note_of(question.scope).principal = visitor.token
        if call.method in revisions.GREETINGS:
            return self._greeting(call, question, visitor.token)
        running = (visitor.session, call.id)
        if visitor.session and (task := asyncio.current_task()) is not None:
            self._running[running] = task
        try:
            return await self._offer.answer(call, visitor, question)
        finally:
            self._running.pop(running, None)

    def _greeting(
        self, call: json_rpc.Call, question: _Question, token: str | None
    ) -> dict[str, Any]:
        if call.method == "initialize":
            question.session = self._door.sessions.issue(token)
        return revisions.greeting(call)

    async def told(self, call: json_rpc.Call, headers: Headers) -> None:
        """Take a notification: only the one that takes a call back means anything here."""
        if call.method != "notifications/cancelled":
            return
        visitor = await self._door.visitor(headers, call.params)
        id = call.params.get("requestId")
        task = self._running.get((visitor.session, id)) if isinstance(id, str | int) else None
        if task is not None and visitor.session:
            task.cancel()

    def emit(self, line: Audit, trace_id: str) -> None:
        """Record a call whose answer has begun already."""
        self._events.emit_audited(line, trace_id=trace_id)


class _Question:
    """One POST: what it says, and how it is answered."""

    def __init__(self, router: Router, scope: Scope, send: Send) -> None:
        self._router, self.scope, self._send = router, scope, send
        self.headers = single_headers(scope["headers"])
        self.trace_id = note_of(scope).trace_id
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
            self.stateless = revisions.is_stateless(call, version)
            if self.stateless:
                revisions.check_envelope(call, self.headers)
            result = await self._router.method(call, self)
        except Refused as refusal:
            unauthorized = RpcError(JSON_RPC_UNAUTHORIZED, str(refusal))
            return refusal.status, json_rpc.error(id, unauthorized).encode()
        except EverContextError as error:
            told = RpcError(json_rpc_code(error), str(error))
            return 200, json_rpc.error(id, told).encode()
        except RpcError as problem:
            broken = problem.code in (json_rpc.PARSE_ERROR, json_rpc.INVALID_REQUEST)
            status = 400 if broken else revisions.status_of(problem, self.stateless)
            return status, json_rpc.error(id, problem).encode()
        return 200, whole(call, result, self.stateless)

    def hear(self, token: str | int) -> Hear | None:
        """Whom to tell of progress, where the client takes a stream."""
        if b"text/event-stream" not in self.headers.get(b"accept", b""):
            return None
        self._telling = Telling(self._send, token)
        return self._telling.hear

    def record(self, line: Audit) -> None:
        """Leave the line of the audit; a stream has begun without it, so it comes after."""
        note = note_of(self.scope)
        if note.settled:
            self._router.emit(line, note.trace_id)
        else:
            note.call = line


@asynccontextmanager
async def open_router(app: EverContext) -> AsyncIterator[Listener]:
    """Bind the router's address and make what answers there."""
    settings = app.settings
    if settings.router_open and not is_loopback(settings.host):
        fix = "Unset EC_ROUTER_OPEN, or listen on 127.0.0.1"
        raise ConfigError("a router without tokens must not be reached by other machines", fix=fix)
    async with AsyncExitStack() as stack:
        bound = stack.enter_context(closing(bind(settings.host, settings.router_port)))
        stack.enter_context(announced(settings.home, [bound.getsockname()[1]]))
        addresses = Addresses.of(settings.host, bound.getsockname()[1], settings.allowed_hosts)
        models = await stack.enter_async_context(AsyncExitStack())
        bounded: App = Bounded(
            Router(app, Picker(partial(open_picking_model, settings), models)), LARGEST_BODY
        )
        guarded = Guarded(bounded, addresses, None, frozenset())
        door = Audited(guarded, app.events, Metrics())
        yield Listener(door, bound, connection_class(app.events, token=not settings.router_open))
