"""The tool router over Streamable HTTP: two tools, a token and a project for every call.

Plain ASGI and JSON: the protocol needs no session for this, every POST stands for itself. So no
session can be another principal's, and a token that was revoked is refused at its next call.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

from evercontext import __version__
from evercontext.access.projects import UNASSIGNED, Projects
from evercontext.access.tokens import AccessToken, Tokens
from evercontext.app import EverContext
from evercontext.app.routing import cloud_of, strategy_in
from evercontext.catalog.card import Card
from evercontext.catalog.servers import Scope as Sight
from evercontext.catalog.tools import EXECUTE, META, Catalog
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, Tool, ToolResult
from evercontext.errors import ConfigError, MethodRefused, NoSuchRoute, UnknownTool
from evercontext.server import json_rpc
from evercontext.server.answers import encode, start
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
from evercontext.server.doors import at_the_router
from evercontext.server.json_rpc import RpcError
from evercontext.server.metrics import Metrics
from evercontext.server.serve import Listener, bind, connection_class
from evercontext.server.status import JSON_RPC_UNAUTHORIZED, http_status
from evercontext.tools.toolbox import Toolbox

LARGEST_BODY = 4 * 1024 * 1024
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
INSTRUCTIONS = (
    "Tools of many servers behind two: find them with tool_discovery, call them with tool_execute."
)
_NEEDS_NOBODY = frozenset({"initialize", "ping"})
"""Says nothing about tools: a client whose token comes with each call must get this far."""


class Refused(Exception):
    """Who asks may not: the HTTP status, and what is said inside MCP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: the token and the project that counts."""

    token: str | None
    sight: Sight


class Router:
    """Answers ``POST /mcp``."""

    def __init__(self, app: EverContext) -> None:
        self._events = app.events
        self._tokens, self._projects = Tokens(app.store), Projects(app.store)
        self._open = app.settings.router_open
        self._visits: dict[str, Sight] = {}
        self._strategy_of = strategy_in(self._projects)
        cloud = cloud_of(app.settings)
        self._catalog = Catalog(app.catalog.servers, self._sight_of, self._strategy_of, cloud)
        commands = app.settings.allow_commands
        self._toolbox: Toolbox = at_the_router(app.toolbox, self._catalog, allow_commands=commands)

    async def _sight_of(self, caller: Caller) -> Sight:
        return self._visits[caller.session or ""]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["path"] != "/mcp":
            await answer_error(send, NoSuchRoute("there is only /mcp"), note_of(scope).trace_id)
            return
        scope[ROUTE] = "/mcp"
        if scope["method"] != "POST":
            error = MethodRefused("only POST is answered here")
            await answer_error(send, error, note_of(scope).trace_id)
            return
        status, body = await self._answer(scope)
        await send(start(status, body))
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope) -> tuple[int, bytes]:
        id: json_rpc.Id = None
        try:
            call = json_rpc.parse(scope[BODY])
            if call is None or call.notification:
                return 202, b""
            id = call.id
            result = await self._method(call, scope)
        except Refused as refusal:
            problem = RpcError(JSON_RPC_UNAUTHORIZED, str(refusal))
            return refusal.status, json_rpc.error(id, problem).encode()
        except RpcError as problem:
            broken = problem.code in (json_rpc.PARSE_ERROR, json_rpc.INVALID_REQUEST)
            return 400 if broken else 200, json_rpc.error(id, problem).encode()
        return 200, result if isinstance(result, bytes) else json_rpc.result(id, result).encode()

    async def _method(self, call: json_rpc.Call, scope: Scope) -> dict[str, Any]:
        if call.method not in _NEEDS_NOBODY or _bearer(scope):
            visitor = await self._visitor(scope, call.params)
            note_of(scope).principal = visitor.token
        if call.method == "initialize":
            return _hello(call.params)
        if call.method == "ping":
            return {}
        if call.method == "tools/list":
            return {"tools": await self._list(visitor)}
        if call.method == "tools/call":
            return await self._call(call, visitor, scope)
        message = f"{printable(call.method, 80)} is not offered here"
        raise RpcError(json_rpc.METHOD_NOT_FOUND, message)

    async def _visitor(self, scope: Scope, params: Mapping[str, Any]) -> Visitor:
        found = params.get("_meta")
        meta = found if isinstance(found, Mapping) else {}
        token = await self._token(_bearer(scope) or meta.get("token"))
        wanted = _header(scope, b"x-evercontext-project") or meta.get("projectId") or ""
        project = await self._project(str(wanted), token)
        if token is None:
            return Visitor(None, Sight(project))
        return Visitor(token.name, Sight(project, token.servers))

    async def _token(self, secret: Any) -> AccessToken | None:
        if not secret and self._open:
            return None
        token = await self._tokens.check(secret) if isinstance(secret, str) else None
        if token is None:
            raise Refused(401, "unauthorized: a token is needed (evercontext tokens create)")
        return token

    async def _project(self, wanted: str, token: AccessToken | None) -> str | None:
        if wanted in ("", UNASSIGNED):
            return None
        known = {project.id for project in await self._projects.all()}
        allowed = token is None or token.projects is None or wanted in token.projects
        if wanted not in known or not allowed:
            raise Refused(403, "unauthorized: this token is not for that project")
        return wanted

    async def _list(self, visitor: Visitor) -> list[dict[str, Any]]:
        if await self._strategy_of(visitor.sight) is not None:
            return [_shown(tool.name, tool) for tool in self._catalog.tools()]
        return [_shown(direct_name(card), card) for card in await self._cards(visitor)]

    async def _cards(self, visitor: Visitor) -> list[Card]:
        with self._visit(visitor) as session:
            caller = Caller("list", Door.MCP, session=session, road=self._toolbox)
            return await self._catalog.cards(caller)

    def _visit(self, visitor: Visitor) -> _Visit:
        return _Visit(self._visits, visitor.sight)

    async def _call(self, call: json_rpc.Call, visitor: Visitor, scope: Scope) -> dict[str, Any]:
        name, given = call.params.get("name"), call.params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(given, dict):
            raise RpcError(json_rpc.INVALID_PARAMS, "a call has a name and arguments")
        if name not in META:
            name, given = EXECUTE, {"toolKey": await self._key(name, visitor), "arguments": given}
        trace_id, started = note_of(scope).trace_id, time.monotonic()
        principal = Principal(project=visitor.sight.project, token=visitor.token)
        with self._visit(visitor) as session:
            caller = Caller(trace_id, Door.MCP, principal=principal, session=session)
            result = await self._toolbox.call(name, given, caller)
        spent = round((time.monotonic() - started) * 1000)
        note_of(scope).call = _line(call, name, given, visitor, result, spent)
        return _as_mcp(result, trace_id)

    async def _key(self, name: str, visitor: Visitor) -> str:
        """The key behind a name of the whole list; only there are tools called directly."""
        if await self._strategy_of(visitor.sight) is None:
            for card in await self._cards(visitor):
                if direct_name(card) == name:
                    return card.key
        raise RpcError(json_rpc.INVALID_PARAMS, f"there is no tool {name[:80]!r}")


class _Visit:
    """What a caller may see, for the time of one request, under a name nobody can guess."""

    def __init__(self, visits: dict[str, Sight], sight: Sight) -> None:
        self._visits, self._sight, self._name = visits, sight, uuid.uuid4().hex

    def __enter__(self) -> str:
        self._visits[self._name] = self._sight
        return self._name

    def __exit__(self, *_: object) -> None:
        del self._visits[self._name]


def direct_name(card: Card) -> str:
    """The name of a tool in a whole list; vendors behind the clients refuse dots and colons."""
    return card.key.replace(":", "__").replace(".", "_")[:128]


def _shown(name: str, tool: Tool | Card) -> dict[str, Any]:
    schema = tool.arguments if isinstance(tool, Tool) else tool.schema
    shape = {"type": "object", **schema}
    return {"name": name, "description": tool.description, "inputSchema": shape}


def _hello(params: Mapping[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in REVISIONS else REVISIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "evercontext-router", "version": __version__},
        "instructions": INSTRUCTIONS,
    }


def _as_mcp(result: ToolResult, trace_id: str) -> dict[str, Any]:
    if result.error is None:
        return {"content": [_text(result.text)], "structuredContent": result.data, "isError": False}
    told = {"code": result.error.code, "message": str(result.error)}
    problem = {"error": told, "status": http_status(result.error), "trace_id": trace_id}
    text = f"{result.error.code}: {result.error}"
    return {"content": [_text(text)], "structuredContent": problem, "isError": True}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _line(
    call: json_rpc.Call,
    name: str,
    given: Mapping[str, Any],
    visitor: Visitor,
    result: ToolResult,
    spent: int,
) -> Audit:
    key = given.get("toolKey")
    known = isinstance(key, str) and not isinstance(result.error, UnknownTool)
    return Audit(
        method=name,
        path=printable(key, 256) if isinstance(key, str) else "",
        size=len(result.text),
        status=http_status(result.error) if result.error else 200,
        door=Door.MCP,
        principal=visitor.token,
        request_id=printable(str(call.id), 64),
        server=key.partition(":")[0] if known and isinstance(key, str) else None,
        duration_ms=spent,
    )


def _header(scope: Scope, wanted: bytes) -> str:
    values = [value for name, value in scope["headers"] if name == wanted]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""


def _bearer(scope: Scope) -> str:
    scheme, _, secret = _header(scope, b"authorization").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


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
        bounded: App = Bounded(Router(app), LARGEST_BODY)
        guarded = Guarded(bounded, addresses, None, frozenset())
        door = Audited(guarded, app.events, Metrics())
        yield Listener(door, bound, connection_class(app.events, token=not settings.router_open))
