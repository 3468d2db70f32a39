"""The REST gateway: every route is one tool, called on the one road."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from evercontext import __version__
from evercontext.domain.principal import Principal
from evercontext.domain.status import http_status
from evercontext.domain.tool import Caller, Door, Tool, ToolResult
from evercontext.errors import (
    BadRequest,
    Cancelled,
    EverContextError,
    MethodRefused,
    NoSuchRoute,
    ToolCrashed,
    UnknownTool,
    WrongMediaType,
)
from evercontext.process.workers import think
from evercontext.server.answers import encode, error_body, error_response, start
from evercontext.server.asgi import BODY, ROUTE, Note, Receive, Scope, Send, note_of
from evercontext.server.docs import POLICY, page
from evercontext.server.leaving import LEAVING, Leaving
from evercontext.server.metrics import Metrics
from evercontext.server.strict_json import parse_object
from evercontext.tools.audit import content_size
from evercontext.tools.toolbox import Toolbox

_TEXT = {"type": "string"}
_ERROR = {
    "type": "object",
    "required": ["error", "detail", "trace_id"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": _TEXT, "message": _TEXT},
        },
        "detail": _TEXT,
        "trace_id": {"type": "string", "format": "uuid"},
    },
}
_MEANINGS = {
    400: "The path escapes the root, or is of a kind that is not allowed here",
    401: "No token, or a wrong one",
    403: "Foreign host or origin, protected path, hard link, or a tree that cannot be written",
    404: "No such file or directory",
    408: "The request did not arrive in time",
    409: "The file exists, or is not the one that was read",
    413: "The file or the request is too large",
    415: "The file is not UTF-8, or the request is not JSON",
    422: "The request does not match the schema",
    500: "The disk answered with an error; nothing is acknowledged",
    503: "Too much is waiting already, or the audit, without which nothing is written, cannot be",
    504: "It took too long",
    507: "No space left; the old content is kept",
}


@dataclass(frozen=True, slots=True)
class Route:
    """A path, the tool behind it, and the shape of its answer."""

    path: str
    tool: str
    answer: Mapping[str, Any]


_DONE = {
    "type": "object",
    "required": ["status", "path"],
    "properties": {"status": {"const": "ok"}, "path": _TEXT},
}

_INDEXED = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"const": "ok"}},
}

ROUTES = (
    Route(
        "/list_files",
        "list_files",
        {
            "type": "object",
            "required": ["files"],
            "properties": {
                "files": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "is_dir"],
                        "properties": {
                            "name": _TEXT,
                            "is_dir": {"type": "boolean"},
                            "size": {"type": ["integer", "null"]},
                        },
                    },
                },
                "truncated": {"type": "boolean"},
            },
        },
    ),
    Route(
        "/read_file",
        "read_file",
        {"type": "object", "required": ["content"], "properties": {"content": _TEXT}},
    ),
    Route("/write_file", "write_file", _DONE),
    Route("/delete_file", "delete_file", _DONE),
    Route("/move_file", "move_file", _DONE),
    Route(
        "/search_files",
        "search_files",
        {
            "type": "object",
            "required": ["result"],
            "properties": {"result": {"type": "array", "items": _TEXT}},
        },
    ),
    Route("/ingest", "ingest", _INDEXED),
    Route("/prune", "prune", _INDEXED),
    Route(
        "/search",
        "search_code",
        {
            "type": "object",
            "required": ["chunks"],
            "properties": {
                "chunks": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["path", "span", "text", "score"],
                        "properties": {
                            "path": _TEXT,
                            "span": {"type": "string", "pattern": r"^L\d+-L\d+$"},
                            "text": _TEXT,
                            "score": {"type": "number", "minimum": 0, "maximum": 1},
                        },
                    },
                },
                "stale": {"type": "boolean"},
            },
        },
    ),
)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway's routes: the tools, served as they are, and the pages around them."""

    pages: FastAPI
    tools: Mapping[str, ToolRoute]


def build_gateway(toolbox: Toolbox, metrics: Metrics, *, token_name: str | None = None) -> Gateway:
    """Return the routes over the tools this toolbox has."""
    pages = FastAPI(
        title="EverContext gateway",
        version=__version__,
        description="Files of one project, inside its root and its policy.",
        docs_url=None,
        redoc_url=None,
        # A route has one name; most clients would not send their body a second time.
        redirect_slashes=False,
        exception_handlers={HTTPException: _no_route},
    )
    tools = {}
    for route in ROUTES:
        try:
            tool = toolbox.find(route.tool)
        except UnknownTool:
            continue
        _declare(pages, tool, route)
        tools[route.path] = ToolRoute(toolbox, tool, route.path, token_name)
    _add_pages(pages, metrics)
    return Gateway(pages, tools)


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
        note.principal, note.writes = self._principal.token, self._tool.writes
        caller = Caller(note.trace_id, Door.REST, principal=self._principal)
        working = self._toolbox.call(self._tool.name, arguments, caller)
        leaving: Leaving | None = scope.get(LEAVING)
        # A write that was begun is made, whether or not anybody waits for the answer.
        if leaving is not None and not self._tool.writes:
            working = leaving.unless_gone(working)
        result = await working
        note.size = content_size(arguments) or content_size(result.data)
        return result


def _declare(api: FastAPI, tool: Tool, route: Route) -> None:
    """Let the OpenAPI schema know a route that is served without the framework."""

    async def endpoint(request: Request) -> Response:
        raise AssertionError(f"{request.url.path} is served before the framework is reached")

    api.add_api_route(
        route.path,
        endpoint,
        methods=["POST"],
        name=tool.name,
        description=tool.description,
        response_class=Response,
        responses=_responses(route.answer),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": dict(tool.arguments)}},
            },
            "parameters": [_TRACE_PARAMETER],
        },
    )


_TRACE_PARAMETER = {
    "name": "x-trace-id",
    "in": "header",
    "required": False,
    "description": "A UUID that binds the requests of one task; made here if absent",
    "schema": _TEXT,
}


def _answer(result: ToolResult, trace_id: str) -> tuple[dict[str, Any], bytes]:
    if result.error:
        return error_response(result.error, trace_id)
    body = encode(result.data if isinstance(result.data, dict) else {"result": result.data})
    return start(200, body), body


def refuse_other_media(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise unless the body is declared as JSON; a foreign page cannot do that unasked."""
    given = [value for name, value in headers if name == b"content-type"]
    media, _, parameters = given[0].lower().partition(b";") if len(given) == 1 else (b"", b"", b"")
    charset = parameters.strip().removeprefix(b"charset=").strip(b'"')
    if media.strip() != b"application/json" or charset not in (b"", b"utf-8"):
        raise WrongMediaType(
            "the body must be JSON in UTF-8", fix="Send Content-Type: application/json"
        )


def _responses(answer: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    declared: dict[int | str, dict[str, Any]] = {
        200: {"description": "Done", "content": {"application/json": {"schema": dict(answer)}}}
    }
    for status, meaning in _MEANINGS.items():
        declared[status] = {
            "description": meaning,
            "content": {"application/json": {"schema": _ERROR}},
        }
    return declared


def _add_pages(api: FastAPI, metrics: Metrics) -> None:
    async def health(request: Request) -> Response:
        request.scope[ROUTE] = "/healthz"
        return Response(encode({"status": "ok", "version": __version__}), media_type=_JSON)

    async def figures(request: Request) -> Response:
        request.scope[ROUTE] = "/metrics"
        text = await asyncio.to_thread(metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def docs(request: Request) -> Response:
        request.scope[ROUTE] = "/docs"
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}
        return Response(page(api.openapi()), media_type="text/html", headers=headers)

    refusals: dict[int | str, dict[str, Any]] = {
        status: {"description": _MEANINGS[status]} for status in (401, 403)
    }
    for path, endpoint, media in (
        ("/healthz", health, _JSON),
        ("/metrics", figures, "text/plain"),
    ):
        described = {"description": "Done", "content": {media: {}}}
        api.add_api_route(
            path,
            endpoint,
            methods=["GET"],
            response_class=Response,
            responses={200: described, **refusals},
        )
    api.add_api_route("/docs", docs, methods=["GET"], include_in_schema=False)


_JSON = "application/json"


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
    error = ToolCrashed("the server failed unexpectedly")
    body = encode(error_body(error, note_of(request.scope).trace_id))
    return Response(body, http_status(error), media_type=_JSON)
