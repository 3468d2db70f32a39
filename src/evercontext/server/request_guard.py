"""Check every request before a route sees it, as plain ASGI.

Each passes to the next: ``Audited`` (trace id, audit line), ``AccessGuard`` (Host, Origin, token),
``Bounded`` (body), then the route.
Frameworks read a body before anybody can object to its size, so nothing here uses one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Door
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import (
    AuditUnavailable,
    BadRequest,
    EverContextError,
    RequestTimeout,
    TooLarge,
    WrongMediaType,
)
from evercontext.events.log import EventLog
from evercontext.server.login_check import LoginCheck
from evercontext.server.request_metrics import Metrics, Timer
from evercontext.server.responses import error_response
from evercontext.server.token_check import Addresses, Token, named_user
from evercontext.storage.login import Login, logged_in

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NOTE = "evercontext.note"
BODY = "evercontext.body"
ROUTE = "evercontext.route"
CLIENT_GONE = 499
BODY_SECONDS = 30.0
DRAINED = 1_048_576
DRAIN_SECONDS = 1.0


@dataclass(slots=True)
class Note:
    """What the audit line of a request will say; routes fill in what only they know."""

    trace_id: str
    given_trace_id: str | None = None
    path: str | None = None
    size: int = 0
    writes: bool = False
    principal: str | None = None
    user: str | None = None
    """Whom the request speaks for, where it said so and may."""
    login: Login | None = None
    """The user's login, where the database has users."""
    call: Audit | None = None
    """The line of the tool call inside, for a protocol that answers everything with 200."""
    settled: bool = False
    """True once the line is written."""


def note_of(scope: Scope) -> Note:
    """Return the note of a request."""
    note: Note = scope[NOTE]
    return note


def principal_of(note: Note | None, otherwise: Principal) -> Principal:
    """Return who a request is for: its login's user, or the one it names, or else the default."""
    if note is None:
        return otherwise
    if note.login:
        return Principal(note.login.user, token=note.login.user, role=note.login.role)
    return replace(otherwise, user=note.user) if note.user else otherwise


def take_trace_id(headers: list[tuple[bytes, bytes]]) -> Note:
    """Take the caller's trace id if it is a UUID; otherwise make one and keep the odd value."""
    values = [value for name, value in headers if name == b"x-trace-id"]
    if not values:
        return Note(str(uuid.uuid4()))
    text = values[0].decode("latin-1")
    try:
        parsed = str(uuid.UUID(text)) if len(values) == 1 else ""
    except ValueError:
        parsed = ""
    if parsed and parsed == text.lower():
        return Note(parsed)
    return Note(str(uuid.uuid4()), escaped_line(text, 64))


IsQuiet = Callable[[Scope, int], bool]
"""True for a request and its status that leave no audit line."""


def never(scope: Scope, status: int) -> bool:
    """Every request leaves its line."""
    return False


class Audited:
    """Gives every request its trace id, and writes its audit line before it is answered.

    A write whose line cannot be written is not acknowledged; a read still is. The call itself was
    on disk before it wrote anything, so this line need not be waited for.
    """

    def __init__(
        self, app: App, events: EventLog, metrics: Metrics, is_quiet: IsQuiet = never
    ) -> None:
        self._app = app
        self._events = events
        self._metrics = metrics
        self._is_quiet = is_quiet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        note = scope[NOTE] = take_trace_id(scope["headers"])
        answering = _Answering(scope, note, send, self._record, self._metrics.begin())
        try:
            await self._app(scope, receive, answering)
        finally:
            answering.give_up()

    def _record(self, scope: Scope, note: Note, status: int) -> None:
        note.settled = True
        if self._is_quiet(scope, status):
            return
        body = note.call or self._line(scope, note, status)
        self._events.emit_audited(body, trace_id=note.trace_id)

    def _line(self, scope: Scope, note: Note, status: int) -> Audit:
        path = note.path if note.path is not None else scope["path"]
        return Audit(
            method=escaped_line(f"{scope['method']} {scope['path']}", 128),
            path=escaped_line(path, 1024),
            size=note.size,
            status=status,
            door=Door.REST,
            principal=note.principal,
            given_trace_id=note.given_trace_id,
        )


class _Answering:
    """Holds an answer back until its audit line is written."""

    def __init__(
        self,
        scope: Scope,
        note: Note,
        send: Send,
        record: Callable[[Scope, Note, int], None],
        timer: Timer,
    ) -> None:
        self._scope, self._note, self._send = scope, note, send
        self._record, self._timer = record, timer
        self._started = self._replaced = False

    async def __call__(self, message: Message) -> None:
        """Take the place of ``send``."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        if not self._replaced:
            await self._send(message)

    def give_up(self) -> None:
        """Record a request that was never answered, because its client went away."""
        if not self._started:
            with suppress(AuditUnavailable):
                self._settle(CLIENT_GONE)

    async def _begin(self, message: Message) -> None:
        trace_id = (b"x-trace-id", self._note.trace_id.encode())
        message["headers"] = [*message.get("headers", ()), trace_id]
        try:
            self._settle(message["status"])
        except AuditUnavailable as error:
            if self._note.writes:
                self._replaced = True
                await answer_error(self._send, error, self._note.trace_id)

    def _settle(self, status: int) -> None:
        self._started = True
        self._timer.end(self._scope["method"], self._scope.get(ROUTE, "other"), status)
        self._record(self._scope, self._note, status)


class AccessGuard:
    """Turns away requests for other hosts, from other sites, and without the token."""

    def __init__(
        self,
        app: App,
        addresses: Addresses,
        token: Token | None,
        open_paths: frozenset[str] = frozenset({"/healthz"}),
        open_below: tuple[str, ...] = (),
        logins: LoginCheck | None = None,
    ) -> None:
        self._app = app
        self._addresses = addresses
        self._token = token
        self._logins = logins
        self._open_paths = open_paths
        self._open_below = open_below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it unread."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            # No route answers one.
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._addresses.check(scope["headers"])
            if not self._is_open(scope["path"]):
                await self._identify(scope)
        except EverContextError as error:
            await _refuse(scope, receive, send, error)
            return
        with logged_in(note_of(scope).login if scope["type"] == "http" else None):
            await self._app(scope, receive, send)

    async def _identify(self, scope: Scope) -> None:
        """Note whom a request is for; raise if it may not be served."""
        note = note_of(scope)
        if self._logins and self._logins.is_needed:
            note.login = await self._logins.check_headers(scope["headers"])
            note.user = note.principal = note.login.user
            return
        if self._token:
            self._token.check(scope["headers"])
        note.user = named_user(scope["headers"], trusted=self._token is not None)

    def _is_open(self, path: str) -> bool:
        return path in self._open_paths or path.startswith(self._open_below)


class Bounded:
    """Reads the body before any route runs, and never more of it than the limit."""

    def __init__(self, app: App, limit: int, seconds: float = BODY_SECONDS) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request with its whole body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            refuse_ambiguous_framing(scope["headers"], self._limit)
            refuse_compressed(scope["headers"])
            async with asyncio.timeout(self._seconds):
                body = await read_body(receive, self._limit)
        except TimeoutError:
            await _refuse(scope, receive, send, RequestTimeout("the body did not arrive in time"))
            return
        except EverContextError as error:
            await _refuse(scope, receive, send, error)
            return
        if body is None:
            return
        scope[BODY] = body
        await self._app(scope, _replay(body, receive), send)


def refuse_ambiguous_framing(headers: list[tuple[bytes, bytes]], limit: int) -> None:
    """Raise if two readers could disagree where the body ends, or if it says it is too large."""
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise BadRequest("the request says twice how long it is")
    if codings and codings[0].strip().lower() != b"chunked":
        raise BadRequest("this transfer encoding is not read here")
    if lengths and not lengths[0].isdigit():
        raise BadRequest("the content length is no number")
    if lengths and (len(lengths[0]) > 18 or int(lengths[0]) > limit):
        raise TooLarge(f"the request is larger than {limit} bytes")


def refuse_compressed(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise for a body that would have to be unpacked: nobody knows how large it would become."""
    codings = {v.strip().lower() for name, v in headers if name == b"content-encoding"}
    if codings - {b"", b"identity"}:
        raise WrongMediaType(
            "a compressed body is not read here", fix="Send it without Content-Encoding"
        )


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """Return the whole body, or ``None`` if the client went away in the middle of it."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            raise TooLarge(f"the request is larger than {limit} bytes")
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


async def answer_error(send: Send, error: EverContextError, trace_id: str) -> None:
    """Send an error as a whole answer."""
    head, body = error_response(error, trace_id)
    await send(head)
    await send({"type": "http.response.body", "body": body})


async def _refuse(scope: Scope, receive: Receive, send: Send, error: EverContextError) -> None:
    """Answer at once, then let a little of the unread body pass so that the answer arrives."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    head, body = error_response(error, note_of(scope).trace_id, close=True)
    await send(head)
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await _drain(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Receive) -> None:
    drained = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while drained < DRAINED:
                message = await receive()
                drained += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
