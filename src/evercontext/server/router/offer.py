"""What the tool router offers to MCP clients over every transport: tools, resources, prompts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from evercontext.app import EverContext
from evercontext.catalog.entry import CatalogEntry
from evercontext.catalog.resources import Resources
from evercontext.catalog.tools import EXECUTE, META, Catalog
from evercontext.domain.caller_scope import NOTHING, Aside, Hear, Scope
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Request,
    RpcError,
    meta_of,
    progress_token_of,
)
from evercontext.mcp.revisions import CAPABILITIES_KEY, ServerInfo
from evercontext.mcp.server.dispatcher import Answer
from evercontext.server.exposed_tools import router_toolbox
from evercontext.server.router.authentication import RouterClient
from evercontext.server.router.results import audit_line, direct_name, encode_call, list_entry

INSTRUCTIONS = (
    "Tools of many servers behind two: find them with tool_discovery, call them with tool_execute."
)
_CAPABILITIES: Mapping[str, Any] = {
    "tools": {"listChanged": False},
    "resources": {},
    "prompts": {},
}
_CHANGING_CAPABILITIES = {kind: {"listChanged": True} for kind in _CAPABILITIES}
_LISTS = {
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources/templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}


class RouterContext(Protocol):
    """One request to the router: who sent it, and where its progress and its audit line go."""

    @property
    def trace_id(self) -> str:
        """The id under which everything about the request is found."""
        ...

    @property
    def client(self) -> RouterClient:
        """Who sent it."""
        ...

    @property
    def stateless(self) -> bool:
        """True for a request of the stateless revision."""
        ...

    def progress_to(self, token: str | int) -> Hear | None:
        """Return what passes progress on under a token; ``None`` if the client takes none."""
        ...

    def record(self, line: Audit) -> None:
        """Write the audit line."""
        ...


class RouterOffer:
    """Answers every method after the handshake."""

    def __init__(self, app: EverContext, *, announces_changes: bool = False) -> None:
        capabilities = _CHANGING_CAPABILITIES if announces_changes else _CAPABILITIES
        self.info = ServerInfo("evercontext-router", capabilities, INSTRUCTIONS, _CAPABILITIES)
        self._servers = app.catalog.servers
        self._resources = Resources(self._servers)
        # Every call here carries its scope: this catalog has no default for one without.
        self._catalog = Catalog(self._servers, app.catalog.projects, cloud=app.catalog.cloud)
        commands = app.settings.allow_commands
        self._toolbox = router_toolbox(app.toolbox, self._catalog, allow_commands=commands)

    async def answer(self, request: Request, context: RouterContext) -> Answer:
        """Answer one method; bytes are a whole response already."""
        scope = context.client.scope
        if request.method == "tools/list":
            return {"tools": await self._list_tools(scope)}
        if request.method == "tools/call":
            return await self._call_tool(request, context)
        if request.method in _LISTS:
            what, field = _LISTS[request.method]
            return {field: await self._resources.list(what, scope)}
        if request.method in ("resources/read", "prompts/get"):
            return await self._fetch(request, context)
        if request.method == "logging/setLevel":
            return {}
        message = f"{escaped_line(request.method, 80)} is not offered here"
        raise RpcError(METHOD_NOT_FOUND, message)

    async def list_version(self, kind: str, scope: Scope) -> tuple[object, ...]:
        """Return a value that changes when a list of tools, resources or prompts does."""
        if kind == "tools" and await self._catalog.strategy(scope) is not None:
            return ("the two tools",)
        return await self._servers.state(scope)

    async def _list_tools(self, scope: Scope) -> list[dict[str, Any]]:
        if await self._catalog.strategy(scope) is not None:
            return [list_entry(tool.name, tool) for tool in self._catalog.tools()]
        return [list_entry(direct_name(entry), entry) for entry in await self._entries(scope)]

    async def _entries(self, scope: Scope) -> list[CatalogEntry]:
        caller = Caller("list", Door.MCP, scope=scope, road=self._toolbox)
        return await self._catalog.entries(caller)

    async def _fetch(self, request: Request, context: RouterContext) -> dict[str, Any]:
        """Read a resource or fill in a prompt."""
        is_resource = request.method == "resources/read"
        name = request.params.get("uri" if is_resource else "name")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "say what is wanted")
        arguments = request.params.get("arguments")
        arguments = arguments if isinstance(arguments, dict) else {}
        more = _stateless_fields(request.params) if context.stateless else {}
        scope, started = context.client.scope, time.monotonic()
        result = await (
            self._resources.read(name, scope, more)
            if is_resource
            else self._resources.get_prompt(name, arguments, scope, more)
        )
        if result is None:
            raise RpcError(INVALID_PARAMS, f"there is no {escaped_line(name, 140)!r}")
        outcome = ToolResult(text="", data=result.value)
        line = audit_line(
            request, request.method, name, context.client, outcome, _ms_since(started)
        )
        context.record(line)
        return dict(result.value)

    async def _call_tool(self, request: Request, context: RouterContext) -> bytes:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "a call has a name and arguments")
        client = context.client
        if name not in META:
            key = await self._key_of(name, client.scope)
            name, arguments = EXECUTE, {"toolKey": key, "arguments": arguments}
        started = time.monotonic()
        caller = Caller(
            context.trace_id,
            Door.MCP,
            principal=Principal(client.user, client.project, client.token),
            scope=client.scope,
            aside=_aside(request, context),
        )
        result = await self._toolbox.call(name, arguments, caller)
        tool_key, ms = arguments.get("toolKey"), _ms_since(started)
        context.record(audit_line(request, name, tool_key, client, result, ms))
        return encode_call(request.id, result, context.trace_id, context.stateless)

    async def _key_of(self, name: str, scope: Scope) -> str:
        """Return the key of a tool that is called by its name in a complete list."""
        if await self._catalog.strategy(scope) is None:
            for entry in await self._entries(scope):
                if direct_name(entry) == name:
                    return entry.key
        raise RpcError(INVALID_PARAMS, f"there is no tool {name[:80]!r}")


def _aside(request: Request, context: RouterContext) -> Aside:
    """Return what goes along with a call: where its progress goes, and stateless fields."""
    token = progress_token_of(request.params)
    hear = context.progress_to(token) if token is not None else None
    if hear is None and not context.stateless:
        return NOTHING
    return Aside(hear, _stateless_fields(request.params) if context.stateless else {})


def _stateless_fields(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a stateless client sends along when it answers a server's question."""
    answers = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
    return {**answers, "_meta": {CAPABILITIES_KEY: meta_of(params).get(CAPABILITIES_KEY)}}


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
