"""Write the OpenAPI document of the REST gateway: each route, its tool, its responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evercontext import __version__
from evercontext.domain.tool import Tool

_TEXT = {"type": "string"}
_ERROR_SCHEMA = {
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
            "properties": {
                "result": {"type": "array", "items": _TEXT},
                "truncated": {"type": "boolean"},
            },
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

_TRACE_PARAMETER = {
    "name": "x-trace-id",
    "in": "header",
    "required": False,
    "description": "A UUID that binds the requests of one task; made here if absent",
    "schema": _TEXT,
}
_PAGES = (
    ("/healthz", "health", "application/json"),
    ("/metrics", "figures", "text/plain"),
)
"""Path, name and media type of the pages that a program may want to read."""


def openapi_document(operations: Iterable[tuple[Route, Tool]]) -> dict[str, Any]:
    """Return the OpenAPI document of these routes and of the pages around them."""
    paths = {route.path: {"post": _tool_operation(route, tool)} for route, tool in operations}
    paths |= {path: {"get": _page_operation(path, name, media)} for path, name, media in _PAGES}
    info = {
        "title": "EverContext gateway",
        "description": "Files of one project, inside its root and its policy.",
        "version": __version__,
    }
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _tool_operation(route: Route, tool: Tool) -> dict[str, Any]:
    arguments = {"application/json": {"schema": dict(tool.arguments)}}
    return {
        "summary": _summary(tool.name),
        "description": tool.description,
        "operationId": _identifier(tool.name, route.path, "post"),
        "responses": _tool_responses(route.answer),
        "requestBody": {"required": True, "content": arguments},
        "parameters": [_TRACE_PARAMETER],
    }


def _tool_responses(answer: Mapping[str, Any]) -> dict[str, Any]:
    success = {"application/json": {"schema": dict(answer)}}
    failure = {"application/json": {"schema": _ERROR_SCHEMA}}
    responses: dict[str, Any] = {"200": {"description": "Done", "content": success}}
    for status, meaning in _MEANINGS.items():
        responses[str(status)] = {"description": meaning, "content": failure}
    return responses


def _page_operation(path: str, name: str, media: str) -> dict[str, Any]:
    refusals = {str(status): {"description": _MEANINGS[status]} for status in (401, 403)}
    return {
        "summary": _summary(name),
        "operationId": _identifier(name, path, "get"),
        "responses": {"200": {"description": "Done", "content": {media: {}}}, **refusals},
    }


def _summary(name: str) -> str:
    return name.replace("_", " ").title()


def _identifier(name: str, path: str, method: str) -> str:
    # Clients generated from earlier versions use these names.
    return re.sub(r"\W", "_", f"{name}{path}_{method}")
