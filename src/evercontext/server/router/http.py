"""Serve the tool router over Streamable HTTP: two tools, with a token and a project.

Every POST stands for itself, in every revision of the protocol. Nothing is remembered between two
of them but which calls are running, so that a client can cancel them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from typing import Any

from evercontext.access.access_tokens import Tokens
from evercontext.access.router_projects import Projects
from evercontext.app import EverContext
from evercontext.app.models import open_picking_model
from evercontext.catalog.picker import Picker
from evercontext.catalog.server_lifecycle import LIST_KINDS
from evercontext.catalog.servers import Listener as ServerListener
from evercontext.domain.caller_scope import ClientChannel
from evercontext.domain.caller_scope import Scope as CallerScope
from evercontext.domain.error_codes import JSON_RPC_UNAUTHORIZED
from evercontext.domain.event import Audit
from evercontext.errors import ConfigError, EverContextError, MethodRefused, NoSuchRoute
from evercontext.events.log import EventLog
from evercontext.mcp.client.exchange import RESOURCE_UPDATED
from evercontext.mcp.messages import (
    INVALID_PARAMS,
    Id,
    RpcError,
    RpcRequest,
    RpcResponse,
    encode_error,
    encode_notification,
)
from evercontext.mcp.revisions import HANDSHAKE_METHODS, SUBSCRIPTION_KEY
from evercontext.mcp.server import dispatcher
from evercontext.mcp.server.client_sessions import ClientSession, ClientSessions, ClientState
from evercontext.mcp.server.dispatcher import Answer, cancelled_id
from evercontext.mcp.server.http import HttpExchange, Refused
from evercontext.mcp.server.response_stream import ResponseStream
from evercontext.process.listening_ports import announced
from evercontext.server.disconnect_watcher import DisconnectWatcher, Watch
from evercontext.server.listener import Listener, bind, connection_class
from evercontext.server.login_check import LoginCheck
from evercontext.server.request_guard import (
    BODY,
    ROUTE,
    AccessGuard,
    App,
    Audited,
    Bounded,
    Receive,
    Scope,
    Send,
    answer_error,
    note_of,
)
from evercontext.server.request_metrics import Metrics
from evercontext.server.responses import start
from evercontext.server.router import search_endpoint
from evercontext.server.router.authentication import (
    ANONYMOUS,
    SESSION_HEADER,
    Authenticator,
    RouterClient,
    bearer_token,
    single_headers,
)
from evercontext.server.router.list_changes import ListChanges
from evercontext.server.router.mcp_methods import RouterOffer, shown_notification
from evercontext.server.router.search_endpoint import CatalogSearch
from evercontext.server.token_check import Addresses, is_loopback

RESUME_SECONDS = 60.0
"""How long a client that lost the stream of a call has to come back for it."""
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
            logins=LoginCheck(app.store, app.memory.here),
        )
        self._search = CatalogSearch(self._authenticator, picker)
        self._offer = RouterOffer(app)
        self._offer.listen(self._server_notified)
        self._sessions = ClientSessions()
        self._background: set[asyncio.Task[Any]] = set()
        self._watcher = DisconnectWatcher()
        self._running: dict[tuple[str, Id], asyncio.Task[Any]] = {}
        self._is_open = settings.router_open
        self._listeners: set[ServerListener] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] not in ("/mcp", search_endpoint.PATH):
            error = NoSuchRoute(f"there is only /mcp, and {search_endpoint.PATH}")
            await answer_error(send, error, note_of(scope).trace_id)
            return
        scope[ROUTE] = scope["path"]
        is_search = scope["path"] == search_endpoint.PATH
        if scope["method"] in ("GET", "DELETE") and not is_search:
            await self._serve_session(scope, receive, send)
        elif scope["method"] != "POST":
            refusal = MethodRefused("only POST is answered here")
            await answer_error(send, refusal, note_of(scope).trace_id)
        elif is_search:
            await self._search(scope, send)
        else:
            await self._serve_post(_RouterPost(scope, send, self._events), receive)

    async def _serve_post(self, post: _RouterPost, receive: Receive) -> None:
        serving = self._respond(post)
        watch = self._watcher.watch(receive)
        if not post.exchange.may_resume:
            try:
                await serving
            except asyncio.CancelledError:
                if not watch.disconnected:
                    raise
                # The client has disconnected, and with it the reason to continue.
            finally:
                watch.end()
            return
        await self._serve_resumable(post, asyncio.ensure_future(serving), watch)

    async def _respond(self, post: _RouterPost) -> None:
        """Answer a request, or take a notification or a response."""
        exchange = post.exchange
        status, body = 202, b""
        try:
            message = exchange.read()
            if isinstance(message, RpcResponse):
                await self._responded(post, message)
            elif message.is_notification:
                await self._notified(post, message)
            else:
                status, body = exchange.encode(message, await self._answer(post, message))
        except (Refused, EverContextError, RpcError) as error:
            status, body = exchange.encode_failure(error)
        await exchange.finish(status, body, post.send_response)

    async def _serve_resumable(
        self, post: _RouterPost, answering: asyncio.Task[None], watch: Watch
    ) -> None:
        """Serve a client that may lose the stream of its call, and come back for the rest."""
        try:
            await asyncio.shield(answering)
        except asyncio.CancelledError:
            stream = post.exchange.resumable
            if watch.disconnected and stream is not None and not answering.done():
                # It may only have lost the stream: the rest is stored until it comes back.
                stream.detach()
                self._background.add(answering)
                answering.add_done_callback(self._background.discard)
                loop = asyncio.get_running_loop()
                loop.call_later(RESUME_SECONDS, self._cancel_unless_resumed, answering, stream)
                return
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            if not watch.disconnected:
                raise
        finally:
            watch.end()

    def _cancel_unless_resumed(self, answering: asyncio.Task[None], stream: ResponseStream) -> None:
        if not stream.is_attached:
            answering.cancel()

    async def _serve_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what belongs to a session: its stream of notifications, and its end."""
        headers, note = single_headers(scope["headers"]), note_of(scope)
        accepts = scope["method"] == "DELETE" or b"text/event-stream" in headers.get(b"accept", b"")
        if SESSION_HEADER not in headers or not accepts:
            fix = "initialize first, and accept text/event-stream"
            refused = MethodRefused("only POST is answered here without a session", fix=fix)
            await answer_error(send, refused, note.trace_id)
            return
        try:
            client = await self._authenticator.authenticate(headers, {})
            note.principal = client.token
            session = self._session_of(client)
        except Refused as refusal:
            body = encode_error(None, RpcError(JSON_RPC_UNAUTHORIZED, str(refusal)))
            await _send_whole(send, refusal.status, body)
            return
        assert session is not None
        if scope["method"] == "DELETE":
            self._sessions.end(session.id)
            await _send_whole(send, 200, b"")
            return
        event_id = headers.get(b"last-event-id", b"").decode("latin-1")
        lost = session.lost_stream(event_id) if event_id else None
        serving = lost[0].resume(send, lost[1]) if lost else self._stand(session, send)
        task = asyncio.ensure_future(serving)
        gone = asyncio.ensure_future(_until_disconnected(receive))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if lost is not None and not task.done():
                lost[0].detach()
            for each in (task, gone):
                each.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _stand(self, session: ClientSession, send: Send) -> None:
        """Send notifications that belong to no request, until the client closes the stream."""
        stream = session.standing = ResponseStream(send)
        stream.begin()
        changes = self._changes_of(session)
        try:
            await changes.watch()
        finally:
            if session.standing is stream:
                session.standing = None

    def _changes_of(self, session: ClientSession) -> ListChanges:
        if session.follower is None:

            async def scope() -> CallerScope:
                return session.scope

            def announce(method: str) -> None:
                session.notify(encode_notification(method, {}))

            session.follower = ListChanges(self._offer, scope, announce)
        follower: ListChanges = session.follower
        return follower

    def _session_of(self, client: RouterClient) -> ClientSession | None:
        if not client.session:
            return None
        if self._sessions.has_ended(client.session):
            raise Refused(404, "the session has ended: initialize again")
        session = self._sessions.get(client.session)
        session.scope = client.scope
        return session

    def _server_notified(self, server: str, method: str, params: dict[str, Any]) -> None:
        """Pass on what a server says outside of a call, to the clients that may see the server."""
        for listener in tuple(self._listeners):
            listener(server, method, params)
        for session in self._sessions:
            if session.standing is None:
                continue
            if method.endswith("/list_changed"):
                self._changes_of(session).wake()
            elif self._offer.is_visible(server, session.scope) and session.state.takes(
                method, params
            ):
                shown = shown_notification(server, method, params, session.state)
                if shown is not None:
                    session.notify(encode_notification(method, shown))

    async def _responded(self, post: _RouterPost, response: RpcResponse) -> None:
        """Take a client's answer to a question that a server put to it."""
        await self._authenticate(post, {})
        if post.exchange.session is not None:
            post.exchange.session.state.receive(response)

    async def _listen(self, post: _RouterPost, request: RpcRequest) -> Answer:
        """Send the notifications a stateless client asks for, until it closes the stream."""
        wishes = request.params.get("notifications")
        stream = post.exchange.stream()
        if not isinstance(wishes, dict) or stream is None:
            raise RpcError(INVALID_PARAMS, "say which notifications, and accept text/event-stream")
        meta = {SUBSCRIPTION_KEY: request.id}

        def send(method: str, params: Mapping[str, Any]) -> None:
            stream.put(encode_notification(method, {**params, "_meta": meta}))

        async def scope() -> CallerScope:
            return post.client.scope

        kinds = [kind for kind in LIST_KINDS if wishes.get(f"{kind}ListChanged") is True]
        changes = ListChanges(self._offer, scope, lambda method: send(method, {}))
        await changes.follow(kinds)
        addresses = await self._offer.follow(wishes.get("resourceSubscriptions"), post.client.scope)
        state = ClientState(subscriptions=set(addresses))
        honoured: dict[str, Any] = {f"{kind}ListChanged": True for kind in kinds}
        if addresses:
            honoured["resourceSubscriptions"] = addresses
        send("notifications/subscriptions/acknowledged", {"notifications": honoured})

        def notified(server: str, method: str, params: dict[str, Any]) -> None:
            if method.endswith("/list_changed"):
                changes.wake()
            elif method == RESOURCE_UPDATED:
                shown = shown_notification(server, method, params, state)
                if shown is not None:
                    send(method, shown)

        self._listeners.add(notified)
        try:
            await changes.watch()
        finally:
            self._listeners.discard(notified)
        return {}

    async def _answer(self, post: _RouterPost, request: RpcRequest) -> Answer:
        is_handshake = request.method in HANDSHAKE_METHODS
        if not is_handshake or self._is_open or bearer_token(post.exchange.headers):
            await self._authenticate(post, request.params)
        if is_handshake:
            if request.method == "initialize":
                self._initialize(post, request)
            return await dispatcher.answer(self._offer, request, post)
        if request.method == "subscriptions/listen" and post.stateless:
            return await self._listen(post, request)
        key = (post.client.session, request.id)
        if post.client.session and (task := asyncio.current_task()) is not None:
            self._running[key] = task
        try:
            answer = await self._offer.answer(request, post)
            if post.exchange.session is not None:
                await self._changes_of(post.exchange.session).listed(request.method)
            return answer
        finally:
            self._running.pop(key, None)

    def _initialize(self, post: _RouterPost, request: RpcRequest) -> None:
        """Begin a session, learn what its client can do, and start the servers it may see."""
        if self._authenticator.needs_login:
            return
        post.new_session = self._authenticator.sessions.issue(post.client.token)
        capabilities = request.params.get("capabilities")
        session = self._sessions.get(post.new_session)
        session.state.capabilities = capabilities if isinstance(capabilities, dict) else {}
        session.scope = post.client.scope
        starting = asyncio.ensure_future(self._start_servers(post.client.scope))
        self._background.add(starting)
        starting.add_done_callback(self._background.discard)

    async def _start_servers(self, scope: CallerScope) -> None:
        with suppress(EverContextError):
            await self._offer.start_servers(scope)

    async def _authenticate(self, post: _RouterPost, params: Mapping[str, Any]) -> None:
        headers = post.exchange.headers
        post.client = await self._authenticator.authenticate(headers, params)
        post.exchange.session = self._session_of(post.client)
        note_of(post.scope).principal = post.client.token

    async def _notified(self, post: _RouterPost, notification: RpcRequest) -> None:
        """Cancel a running call of the same session; other notifications need no action."""
        if (id := cancelled_id(notification)) is None:
            return
        headers = post.exchange.headers
        client = await self._authenticator.authenticate(headers, notification.params)
        task = self._running.get((client.session, id))
        if task is not None and client.session:
            task.cancel()


class _RouterPost:
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

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """The headers of the request."""
        return self.exchange.headers

    @property
    def state(self) -> ClientState:
        """What is remembered of the client; nothing, where it has no session."""
        session = self.exchange.session
        return session.state if session is not None else ClientState()

    def channel(self) -> ClientChannel | None:
        """Return the way to the client while this request runs: the stream of its response."""
        session, stream = self.exchange.session, self.exchange.stream()
        return _PostChannel(session, stream) if session and stream else None

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


class _PostChannel:
    """The client of one POST, reached by the stream that its response becomes."""

    def __init__(self, session: ClientSession, stream: ResponseStream) -> None:
        self._session, self._stream = session, stream
        self.key = session.id

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, unless it is one the client does not want."""
        if self._session.state.takes(method, params):
            self._stream.put(encode_notification(method, params), optional=True)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return what the client answers, in a POST of its own."""
        return await self._session.state.ask(method, params, self._stream.put)


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_whole(send: Send, status: int, body: bytes) -> None:
    await send(start(status, body))
    await send({"type": "http.response.body", "body": body})


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
        guarded = AccessGuard(bounded, addresses, None, frozenset())
        audited = Audited(guarded, app.events, Metrics())
        yield Listener(audited, bound, connection_class(app.events, token=not settings.router_open))
