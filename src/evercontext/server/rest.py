"""Serve the REST gateway: every route calls one tool through the toolbox."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as PageRoute

from evercontext import __version__
from evercontext.domain.error_codes import http_status
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, Tool, ToolResult
from evercontext.errors import (
    BadRequest,
    Busy,
    Cancelled,
    EverContextError,
    MethodRefused,
    NoSuchRoute,
    ToolCrashed,
    UnknownTool,
    WrongMediaType,
)
from evercontext.process.worker_threads import think
from evercontext.server.api_page import POLICY, page
from evercontext.server.openapi import ROUTES, openapi_document
from evercontext.server.request_cancellation import DISCONNECT, Disconnect
from evercontext.server.request_guard import (
    BODY,
    ROUTE,
    Note,
    Receive,
    Scope,
    Send,
    note_of,
    principal_of,
)
from evercontext.server.request_metrics import Metrics
from evercontext.server.responses import encode, error_body, error_response, start
from evercontext.server.strict_json import parse_object
from evercontext.tools.audit_line import content_size
from evercontext.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway's routes: the tools, served as they are, and the pages around them."""

    pages: Starlette
    tools: Mapping[str, ToolRoute]


def build_gateway(toolbox: Toolbox, metrics: Metrics, *, token_name: str | None = None) -> Gateway:
    """Return the routes over the tools this toolbox has."""
    operations = []
    for route in ROUTES:
        with contextlib.suppress(UnknownTool):
            operations.append((route, toolbox.find(route.tool)))
    tools = {
        route.path: ToolRoute(toolbox, tool, route.path, token_name) for route, tool in operations
    }
    return Gateway(_pages(openapi_document(operations), metrics), tools)


class ToolRoute:
    """One tool as a plain ASGI application: what a request costs is the tool, not a framework."""

    def __init__(self, toolbox: Toolbox, tool: Tool, path: str, token_name: str | None) -> None:
        self._toolbox = toolbox
        self._tool = tool
        self._path = path
        self._principal = Principal(token=token_name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request whose body was already read."""
        scope[ROUTE] = self._path
        note = note_of(scope)
        if scope["method"] == "POST":
            result = await self._call(scope, note)
            if type(result.error) is Cancelled:
                return  # nobody is there to be answered
            head, body = await think(note.size, _answer, result, note.trace_id)
        else:
            error = MethodRefused("this route takes another method", fix="See /docs")
            head, body = error_response(error, note.trace_id, extra=[(b"allow", b"POST")])
        await send(head)
        await send({"type": "http.response.body", "body": body})

    async def _call(self, scope: Scope, note: Note) -> ToolResult:
        try:
            refuse_other_media(scope["headers"])
            body: bytes = scope[BODY]
            arguments = await think(len(body), parse_object, body)
        except EverContextError as error:
            return ToolResult.failed(error)
        path = arguments.get("path")
        note.path = path if isinstance(path, str) else None
        who = principal_of(note, self._principal)
        note.principal, note.writes = who.token, self._tool.writes
        caller = Caller(note.trace_id, Door.REST, principal=who)
        working = self._toolbox.call(self._tool.name, arguments, caller)
        disconnect: Disconnect | None = scope.get(DISCONNECT)
        # A write that was begun is made, whether or not anybody waits for the answer.
        if disconnect is not None and not self._tool.writes:
            working = disconnect.unless_disconnected(working)
        result = await working
        note.size = content_size(arguments) or content_size(result.data)
        return result


def _answer(result: ToolResult, trace_id: str) -> tuple[dict[str, Any], bytes]:
    if result.error:
        return error_response(result.error, trace_id)
    body = encode(result.data if isinstance(result.data, dict) else {"result": result.data})
    return start(200, body), body


def refuse_other_media(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise unless the body is declared as JSON; a foreign page cannot do that unasked."""
    values = [value for name, value in headers if name == b"content-type"]
    media, _, parameters = (
        values[0].lower().partition(b";") if len(values) == 1 else (b"", b"", b"")
    )
    charset = parameters.strip().removeprefix(b"charset=").strip(b'"')
    if media.strip() != b"application/json" or charset not in (b"", b"utf-8"):
        raise WrongMediaType(
            "the body must be JSON in UTF-8", fix="Send Content-Type: application/json"
        )


_JSON = "application/json"
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"


def _pages(document: Mapping[str, Any], metrics: Metrics) -> Starlette:
    """Return the pages that are no tool: health, metrics, the documentation and its document."""

    async def health(request: Request) -> Response:
        request.scope[ROUTE] = "/healthz"
        return Response(encode({"status": "ok", "version": __version__}), media_type=_JSON)

    async def figures(request: Request) -> Response:
        request.scope[ROUTE] = "/metrics"
        return Response(await asyncio.to_thread(metrics.text), media_type=_PLAIN)

    async def docs(request: Request) -> Response:
        request.scope[ROUTE] = "/docs"
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}
        return Response(page(document), media_type="text/html", headers=headers)

    async def openapi(request: Request) -> Response:
        return Response(encode(document), media_type=_JSON)

    routes = {"/healthz": health, "/metrics": figures, "/docs": docs, "/openapi.json": openapi}
    pages = Starlette(
        routes=[PageRoute(path, endpoint) for path, endpoint in routes.items()],
        exception_handlers={HTTPException: _no_route},
    )
    # A route has one name; most clients would not send their body a second time.
    pages.router.redirect_slashes = False
    return pages


async def _no_route(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    kinds: dict[int, EverContextError] = {
        404: NoSuchRoute("nothing is served here", fix="See /docs"),
        405: MethodRefused("this route takes another method", fix="See /docs"),
    }
    error = kinds.get(problem.status_code, BadRequest(str(problem.detail)))
    body = encode(error_body(error, note_of(request.scope).trace_id))
    return Response(body, http_status(error), headers=problem.headers, media_type=_JSON)


async def answer_crash(request: Request, problem: Exception) -> Response:
    """Answer a request that met a mistake of ours; the traceback stays here."""
    error: EverContextError = ToolCrashed("the server failed unexpectedly")
    if isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE):
        error = Busy("too many files are open; try again")
    body = encode(error_body(error, note_of(request.scope).trace_id))
    return Response(body, http_status(error), media_type=_JSON)
