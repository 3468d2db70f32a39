"""Serve everything below ``/console/``: sign-in, pages, files, the API and its audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, unquote

from evercontext import __version__
from evercontext.access.console_links import Consoles
from evercontext.app import EverContext
from evercontext.errors import (
    EverContextError,
    LimitReached,
    MethodRefused,
    NoSuchRoute,
    StoreGone,
)
from evercontext.server.console import (
    approvals,
    assets,
    code_search,
    figures,
    memories,
    runs,
    sessions,
    statistics,
    stream,
    tool_switches,
    work,
)
from evercontext.server.console.authentication import BrowserSession, BrowserSessions
from evercontext.server.console.event_feed import EventFeed
from evercontext.server.console.live_runs import LiveRuns
from evercontext.server.console.pictures import read_picture
from evercontext.server.console.request import ConsoleRequest
from evercontext.server.console.stream import StreamReader, send_frames
from evercontext.server.request_guard import BODY, ROUTE, Receive, Scope, Send, note_of
from evercontext.server.responses import RawHeaders, encode, error_response
from evercontext.server.rest import refuse_other_media
from evercontext.server.strict_json import parse_object

PREFIX = "/console/"
ROUTES = (
    *runs.ROUTES,
    *figures.ROUTES,
    *approvals.ROUTES,
    *sessions.ROUTES,
    *code_search.ROUTES,
    *memories.ROUTES,
    *tool_switches.ROUTES,
    *statistics.ROUTES,
    *work.ROUTES,
)
_STREAM_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]


def is_quiet(scope: Scope, status: int) -> bool:
    """True for what leaves no audit line: a page that looks would fill the log it looks at."""
    inside = f"{scope['path']}/".startswith(PREFIX)
    return inside and scope["method"] in ("GET", "HEAD") and status < 400


class ConsoleApplication:
    """Serve ``/console/`` as plain ASGI; Host and Origin were checked before."""

    def __init__(self, app: EverContext, url: str) -> None:
        self._app = app
        self.feed = EventFeed(app.settings.traces)
        self.sessions = BrowserSessions(Consoles(app.store), url)
        self.work = LiveRuns(app, self.feed)
        self._readers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        scope[ROUTE] = PREFIX
        rest = scope["path"].removeprefix(PREFIX)
        note_of(scope).writes = scope["method"] == "POST"
        try:
            if rest == "api/stream" and scope["method"] == "GET":
                await self.sessions.require(scope["headers"])
                await self._stream(scope, receive, send)
                return
            status, body, headers, media = await self._answer(scope, rest)
        except EverContextError as error:
            head, body = error_response(error, note_of(scope).trace_id, extra=assets.GUARDS)
            await _send(send, head, body)
            return
        await _send(send, _start(status, body, headers, media), body)

    async def _answer(self, scope: Scope, rest: str) -> tuple[int, bytes, RawHeaders, bytes]:
        if rest == "api/picture" and scope["method"] == "GET":
            await self.sessions.require(scope["headers"])
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=20))
            data, media = await read_picture(self.work, self._app.memory.path, query)
            return 200, data, [(b"cache-control", b"no-store")], media
        if rest.startswith("api/"):
            response = await self._api(scope, rest.removeprefix("api/"))
            return 200, encode(response), [(b"cache-control", b"no-store")], b"application/json"
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodRefused("this page is only read")
        if not scope["path"].startswith(PREFIX):
            return 308, b"", [(b"location", PREFIX.encode())], b"text/html; charset=utf-8"
        if rest.startswith("static/"):
            return _static(rest.removeprefix("static/"), scope["headers"])
        return await self._page(scope)

    async def _page(self, scope: Scope) -> tuple[int, bytes, RawHeaders, bytes]:
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        headers = dict(scope["headers"])
        html, language = b"text/html; charset=utf-8", _language(headers)
        never = (b"cache-control", b"no-store")
        # A browser that looks ahead, or only asks for the head, must not use the link up.
        looks = scope["method"] == "HEAD" or b"prefetch" in headers.get(b"sec-purpose", b"")
        if "ticket" in query and not looks and self.sessions.is_own_name(scope["headers"]):
            cookie = await self.sessions.admit(query["ticket"])
            if cookie:
                to = [(b"location", PREFIX.encode()), (b"set-cookie", cookie.encode()), never]
                return 303, b"", to, html
        session = await self.sessions.of(scope["headers"])
        if session is None:
            return 401, assets.page("locked.html", language), [never], html
        if not looks:
            await self.sessions.touch(session)
        return 200, assets.page("index.html", language), [never], html

    async def _api(self, scope: Scope, path: str) -> Any:
        session = await self.sessions.require(scope["headers"])
        if path == "me" and scope["method"] == "GET":
            return self._me(session)
        parts = tuple(unquote(part) for part in path.split("/"))
        for route in ROUTES:
            arguments = route.match(scope["method"], parts)
            if arguments is not None:
                return await route.handler(self._request(scope, session, arguments))
        if any(route.match(route.method, parts) is not None for route in ROUTES):
            raise MethodRefused("this route takes another method")
        raise NoSuchRoute("the console has no such route")

    def _request(
        self, scope: Scope, session: BrowserSession, parts: tuple[str, ...]
    ) -> ConsoleRequest:
        note, body = note_of(scope), {}
        if scope["method"] == "POST":
            self.sessions.require_same_page(session, scope["headers"])
            refuse_other_media(scope["headers"])
            body = parse_object(scope[BODY])
        note.principal = "console"
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=20))
        return ConsoleRequest(self._app, self.feed, self.work, note.trace_id, parts, query, body)

    def _me(self, session: BrowserSession) -> dict[str, Any]:
        settings = self._app.settings
        return {
            "csrf": session.csrf,
            "version": __version__,
            "root": str(settings.root),
            "project": settings.root.resolve().name or "/",
            "model": settings.model_name,
        }

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._readers >= stream.MOST_READERS:
            raise LimitReached("too many pages are open", fix="Close some")
        headers = dict(scope["headers"])
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=20))
        last = headers.get(b"last-event-id", b"").decode("latin-1") or query.get("after", "")
        trace = query.get("trace") or None
        if trace is not None:
            await self.feed.look(lambda ledger: runs.find(ledger, trace))
        head = {"type": "http.response.start", "status": 200}
        await send({**head, "headers": [*_STREAM_HEADERS, assets.NOSNIFF, *assets.GUARDS]})
        self._readers += 1
        try:
            reader = StreamReader(
                self._app,
                self.feed,
                trace,
                last,
                texts=self.work.texts,
                projects=self.work.projects,
            )
            await send_frames(reader, receive, send)
        finally:
            self._readers -= 1


def _static(name: str, headers: RawHeaders) -> tuple[int, bytes, RawHeaders, bytes]:
    asset = assets.assets().get(name)
    if asset is None:
        raise NoSuchRoute("the console has no such file")
    # Asked again each time, answered from the browser's copy: an update is seen at once.
    caching = [(b"etag", asset.tag), (b"cache-control", b"no-cache")]
    if (b"if-none-match", asset.tag) in headers:
        return 304, b"", caching, asset.media
    return 200, asset.content, caching, asset.media


def _language(headers: dict[bytes, bytes]) -> str:
    return assets.language_of(headers.get(b"accept-language", b"").decode("latin-1"))


def _start(status: int, body: bytes, headers: RawHeaders, media: bytes) -> dict[str, Any]:
    length = (b"content-length", str(len(body)).encode())
    every = [(b"content-type", media), length, assets.NOSNIFF, *headers, *assets.GUARDS]
    return {"type": "http.response.start", "status": status, "headers": every}


async def _send(send: Send, head: dict[str, Any], body: bytes) -> None:
    await send(head)
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def open_console(app: EverContext, address: str) -> AsyncIterator[ConsoleApplication]:
    """Open the console of a listener, and announce it in the store."""
    url = address + PREFIX
    console = ConsoleApplication(app, url)
    consoles = Consoles(app.store)

    async def announce() -> None:
        await consoles.sweep()
        places = [place for place in await console.work.projects() if place != app.memory.path]
        await consoles.announce(url, app.memory.path, app.settings.user, places)

    # Without a database nobody finds the console; it is said there once it is back.
    await app.memory.when_reachable(announce)
    try:
        yield console
    finally:
        await console.feed.close()
        await console.work.close()
        with suppress(StoreGone):
            await consoles.retire()
