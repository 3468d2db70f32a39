"""The tool router over Streamable HTTP: two tools, a token and a project for every call.

Every POST stands for itself, in every revision of the protocol. Nothing is remembered between two
of them but which calls are running, so that a client can cancel them.
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
from evercontext.domain.event import Audit
from evercontext.errors import ConfigError, MethodRefused, NoSuchRoute
from evercontext.events.log import EventLog
from evercontext.mcp.messages import Id, Request
from evercontext.mcp.revisions import HANDSHAKE_METHODS
from evercontext.mcp.server import dispatcher
from evercontext.mcp.server.dispatcher import Answer, cancelled_id
from evercontext.mcp.server.http import HttpExchange
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
from evercontext.server.disconnect_watcher import DisconnectWatcher
from evercontext.server.metrics import Metrics
from evercontext.server.responses import start
from evercontext.server.router import catalog_search
from evercontext.server.router.authentication import (
    ANONYMOUS,
    SESSION_HEADER,
    Authenticator,
    RouterClient,
    bearer_token,
    single_headers,
)
from evercontext.server.router.catalog_search import CatalogSearch
from evercontext.server.router.offer import RouterOffer
from evercontext.server.serve import Listener, bind, connection_class

LARGEST_BODY = 4 * 1024 * 1024


class HttpRouter:
    """Answers ``POST /mcp`` and ``POST /catalog/search``."""

    def __init__(self, app: EverContext, picker: Picker) -> None:
        self._events = app.events
        settings = app.settings
        self._authenticator = Authenticator(
            Tokens(app.store),
            Projects(app.store),
            settings.root,
            allow_anonymous=settings.router_open,
            on_project_renamed=app.memory.carry_over,
        )
        self._search = CatalogSearch(self._authenticator, picker)
        self._offer = RouterOffer(app)
        self._watcher = DisconnectWatcher()
        self._running: dict[tuple[str, Id], asyncio.Task[Any]] = {}

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
        watch = self._watcher.watch(receive)
        try:
            await self._serve_post(_Post(scope, send, self._events))
        except asyncio.CancelledError:
            if not watch.disconnected:
                raise
            # The client has disconnected, and with it the reason to continue.
        finally:
            watch.end()

    async def _serve_post(self, post: _Post) -> None:
        answer, notified = partial(self._answer, post), partial(self._notified, post)
        await post.exchange.serve(answer, notified, post.send_response)

    async def _answer(self, post: _Post, request: Request) -> Answer:
        is_handshake = request.method in HANDSHAKE_METHODS
        if not is_handshake or bearer_token(post.exchange.headers):
            await self._authenticate(post, request)
        if is_handshake:
            if request.method == "initialize":
                post.new_session = self._authenticator.sessions.issue(post.client.token)
            return await dispatcher.answer(self._offer, request, post)
        key = (post.client.session, request.id)
        if post.client.session and (task := asyncio.current_task()) is not None:
            self._running[key] = task
        try:
            return await dispatcher.answer(self._offer, request, post)
        finally:
            self._running.pop(key, None)

    async def _authenticate(self, post: _Post, request: Request) -> None:
        headers = post.exchange.headers
        post.client = await self._authenticator.authenticate(headers, request.params)
        note_of(post.scope).principal = post.client.token

    async def _notified(self, post: _Post, notification: Request) -> None:
        """Cancel a running call of the same session; other notifications need no action."""
        if (id := cancelled_id(notification)) is None:
            return
        headers = post.exchange.headers
        client = await self._authenticator.authenticate(headers, notification.params)
        task = self._running.get((client.session, id))
        if task is not None and client.session:
            task.cancel()


class _Post:
    """One POST: who sends it, and where its progress and its audit line go."""

    def __init__(self, scope: Scope, send: Send, events: EventLog) -> None:
        self.scope, self._send, self._events = scope, send, events
        self.exchange = HttpExchange(scope[BODY], single_headers(scope["headers"]), send)
        self.progress_to = self.exchange.progress_to
        self.trace_id = note_of(scope).trace_id
        self.client: RouterClient = ANONYMOUS
        self.new_session: str | None = None

    @property
    def stateless(self) -> bool:
        """True for a request of the stateless revision."""
        return self.exchange.stateless

    async def send_response(self, status: int, body: bytes) -> None:
        """Send a whole response."""
        has_session = self.new_session and status == 200
        extra = [(SESSION_HEADER, (self.new_session or "").encode())] if has_session else []
        await self._send(start(status, body, extra))
        await self._send({"type": "http.response.body", "body": body})

    def record(self, line: Audit) -> None:
        """Write the audit line with the response, or now if a stream has begun without it."""
        note = note_of(self.scope)
        if note.settled:
            self._events.emit_audited(line, trace_id=note.trace_id)
        else:
            note.call = line


@asynccontextmanager
async def open_router(app: EverContext) -> AsyncIterator[Listener]:
    """Bind the router's address and yield what answers there."""
    settings = app.settings
    if settings.router_open and not is_loopback(settings.host):
        fix = "Unset EC_ROUTER_OPEN, or listen on 127.0.0.1"
        raise ConfigError("a router without tokens must not be reached by other machines", fix=fix)
    async with AsyncExitStack() as stack:
        bound = stack.enter_context(closing(bind(settings.host, settings.router_port)))
        stack.enter_context(announced(settings.home, [bound.getsockname()[1]]))
        addresses = Addresses.of(settings.host, bound.getsockname()[1], settings.allowed_hosts)
        models = await stack.enter_async_context(AsyncExitStack())
        picker = Picker(partial(open_picking_model, settings), models)
        bounded: App = Bounded(HttpRouter(app, picker), LARGEST_BODY)
        guarded = Guarded(bounded, addresses, None, frozenset())
        audited = Audited(guarded, app.events, Metrics())
        yield Listener(audited, bound, connection_class(app.events, token=not settings.router_open))
