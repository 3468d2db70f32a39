"""Answer MCP clients of the tool router: tools, resources, prompts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from evercontext.app import EverContext
from evercontext.catalog.discovery_tools import EXECUTE, META, Catalog
from evercontext.catalog.resources import SCHEME, Resources
from evercontext.catalog.servers import Listener
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.domain.caller_scope import NOTHING, Aside, ClientChannel, Hear, Scope
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, ToolResult
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import ServerProblem
from evercontext.mcp.client.exchange import RESOURCE_UPDATED, RpcProblem
from evercontext.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcError,
    RpcRequest,
    meta_of,
    progress_token_of,
)
from evercontext.mcp.revisions import (
    CAPABILITIES_KEY,
    LOG_LEVEL_KEY,
    ServerInfo,
    check_mirrored,
)
from evercontext.mcp.server.client_sessions import LOG_LEVELS, ClientState
from evercontext.mcp.server.dispatcher import Answer, rpc_error
from evercontext.server.exposed_tools import router_toolbox
from evercontext.server.router.authentication import RouterClient
from evercontext.server.router.results import (
    audit_line,
    direct_name,
    direct_prefix,
    encode_call,
    list_entry,
    own_list_entry,
)

INSTRUCTIONS = (
    "Tools of many servers behind two: find them with tool_discovery, call them with tool_execute."
)
_CAPABILITIES: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
_HANDSHAKE_CAPABILITIES = {**_CAPABILITIES, "logging": {}}
_RELAYED_CAPABILITIES: Mapping[str, Any] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
"""What servers may ask of the client behind a call; its answer says what it can."""
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

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """The headers of the request; ``None`` where it came without."""
        ...

    @property
    def state(self) -> ClientState:
        """What is remembered of the client between two requests."""
        ...

    def channel(self) -> ClientChannel | None:
        """Return the way to the client while the request runs; ``None`` if it has none."""
        ...

    def progress_to(self, token: str | int) -> Hear | None:
        """Return what passes progress on under a token; ``None`` if the client takes none."""
        ...

    def record(self, line: Audit) -> None:
        """Write the audit line."""
        ...


class RouterOffer:
    """Answers every method after the handshake."""

    def __init__(self, app: EverContext) -> None:
        self.info = ServerInfo(
            "evercontext-router", _HANDSHAKE_CAPABILITIES, INSTRUCTIONS, _CAPABILITIES
        )
        self._servers = app.catalog.servers
        self._servers.client_capabilities = _RELAYED_CAPABILITIES
        self._resources = Resources(self._servers)
        # Every call here carries its scope: this catalog has no default for one without.
        self._catalog = Catalog(
            self._servers,
            app.catalog.projects,
            cloud=app.catalog.cloud,
            plugged=app.catalog.plugged,
        )
        commands = app.settings.allow_commands
        self._toolbox = router_toolbox(app.toolbox, self._catalog, allow_commands=commands)

    def listen(self, listener: Listener) -> None:
        """Pass on what servers say to nobody in particular."""
        self._servers.listeners.add(listener)

    def unlisten(self, listener: Listener) -> None:
        """Pass on nothing any more."""
        self._servers.listeners.discard(listener)

    def is_visible(self, server: str, scope: Scope) -> bool:
        """Tell whether a client may see a server that is running."""
        return self._servers.is_visible(server, scope)

    async def follow(self, addresses: Any, scope: Scope) -> list[str]:
        """Follow resources; return the addresses that can be followed."""
        followed = []
        for address in addresses if isinstance(addresses, list) else ():
            with suppress(ServerProblem):
                plain = isinstance(address, str)
                method = "resources/subscribe"
                if plain and await self._resources.subscribe(method, address, scope) is not None:
                    followed.append(address)
        return followed

    async def start_servers(self, scope: Scope) -> None:
        """Begin to start the servers of a client that has come, so that they are there in time."""
        await self._servers.start(scope)

    async def answer(self, request: RpcRequest, context: RouterContext) -> Answer:
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
        if request.method == "completion/complete":
            return await self._complete(request, context)
        if request.method in ("resources/subscribe", "resources/unsubscribe"):
            return await self._subscribe(request, context)
        if request.method == "logging/setLevel":
            return await self._set_level(request, context)
        message = f"{escaped_line(request.method, 80)} is not offered here"
        raise RpcError(METHOD_NOT_FOUND, message)

    async def list_version(self, kind: str, scope: Scope) -> tuple[object, ...]:
        """Return a value that changes when a list of tools, resources or prompts does."""
        if kind == "tools" and await self._catalog.strategy(scope) is not None:
            return ("the two tools",)
        return await self._servers.state(scope, kind)

    async def _list_tools(self, scope: Scope) -> list[dict[str, Any]]:
        if await self._catalog.strategy(scope) is not None:
            return [own_list_entry(tool) for tool in self._catalog.tools()]
        return [list_entry(direct_name(entry), entry) for entry in await self._entries(scope)]

    async def _entries(self, scope: Scope) -> list[CatalogEntry]:
        caller = Caller("list", Door.MCP, scope=scope, road=self._toolbox)
        return await self._catalog.entries(caller)

    async def _fetch(self, request: RpcRequest, context: RouterContext) -> dict[str, Any]:
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
            raise _no_resource(name)
        outcome = ToolResult(text="", data=result.value)
        line = audit_line(
            request, request.method, name, context.client, outcome, _ms_since(started)
        )
        context.record(line)
        return dict(result.value)

    async def _subscribe(self, request: RpcRequest, context: RouterContext) -> dict[str, Any]:
        """Begin or end to follow a resource, at its server and here."""
        address = request.params.get("uri")
        if not isinstance(address, str):
            raise RpcError(INVALID_PARAMS, "a subscription has the uri of a resource")
        result = await self._resources.subscribe(request.method, address, context.client.scope)
        if result is None:
            raise _no_resource(address)
        followed = context.state.subscriptions
        if request.method == "resources/subscribe":
            followed.add(address)
        else:
            followed.discard(address)
        return {}

    async def _set_level(self, request: RpcRequest, context: RouterContext) -> dict[str, Any]:
        """Have servers send log messages from a level on; others may want more than this client."""
        level = request.params.get("level")
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"level: one of {', '.join(LOG_LEVELS)}")
        context.state.log_level = level
        for backend in await self._servers.visible(context.client.scope):
            with suppress(ServerProblem):
                await backend.set_log_level(level)
        return {}

    async def _complete(self, request: RpcRequest, context: RouterContext) -> dict[str, Any]:
        """Have the server of a prompt or a resource template complete an argument."""
        reference, argument = request.params.get("ref"), request.params.get("argument")
        if not isinstance(reference, dict) or not isinstance(argument, dict):
            raise RpcError(INVALID_PARAMS, "a completion has a ref and an argument")
        more = _stateless_fields(request.params) if context.stateless else {}
        filled = request.params.get("context")
        params = {"argument": argument, **({"context": filled} if filled else {}), **more}
        result = await self._resources.complete(reference, params, context.client.scope)
        if result is None:
            raise RpcError(INVALID_PARAMS, "there is no such prompt or template")
        return dict(result.value)

    async def _call_tool(self, request: RpcRequest, context: RouterContext) -> bytes:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "a call has a name and arguments")
        client, direct = context.client, name not in META
        if direct:
            entry = await self._entry_of(name, client.scope)
            if context.stateless:
                check_mirrored(entry.mirrored(arguments), context.headers)
            name, arguments = EXECUTE, {"toolKey": entry.key, "arguments": arguments}
        started = time.monotonic()
        caller = Caller(
            context.trace_id,
            Door.MCP,
            principal=Principal(client.user, client.project, client.token, client.role),
            scope=client.scope,
            aside=_aside(request, context),
        )
        result = await self._toolbox.call(name, arguments, caller)
        tool_key, ms = arguments.get("toolKey"), _ms_since(started)
        context.record(audit_line(request, name, tool_key, client, result, ms))
        if isinstance(result.error, RpcProblem):
            raise rpc_error(result.error)
        if result.raw is not None and isinstance(tool_key, str):
            self._resources.note_links(tool_key.partition(":")[0], result.data["result"])
        return encode_call(
            request.id, result, context.trace_id, stateless=context.stateless, direct=direct
        )

    async def _entry_of(self, name: str, scope: Scope) -> CatalogEntry:
        """Return the tool that is called by its name in a complete list.

        Its own server is waited for as long as it starts, and no other one.
        """
        why = ""
        if await self._catalog.strategy(scope) is None:
            for backend in await self._servers.visible(scope):
                if name.startswith(direct_prefix(backend.config.id)):
                    for entry in await self._servers.tools_of(backend):
                        if direct_name(entry) == name:
                            return entry
                    why = f": {backend.config.id}: {backend.problem}" if backend.problem else why
            for entry in await self._entries(scope):
                if direct_name(entry) == name:
                    return entry
        raise RpcError(INVALID_PARAMS, f"there is no tool {name[:80]!r}{why}")


def shown_notification(
    server: str, method: str, params: dict[str, Any], state: ClientState
) -> dict[str, Any] | None:
    """Return a notification of a server as a client is shown it; ``None`` if it is not for it."""
    if method != RESOURCE_UPDATED:
        return params
    address = f"{SCHEME}{server}/{params.get('uri')}"
    return {**params, "uri": address} if address in state.subscriptions else None


def _no_resource(name: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"there is no {escaped_line(name, 140)!r}", {"uri": name})


def _aside(request: RpcRequest, context: RouterContext) -> Aside:
    """Return what goes along with a call: where its progress goes, and stateless fields."""
    token = progress_token_of(request.params)
    hear = context.progress_to(token) if token is not None else None
    channel = None if context.stateless else context.channel()
    if hear is None and channel is None and not context.stateless:
        return NOTHING
    more = _stateless_fields(request.params) if context.stateless else {}
    return Aside(hear, more, channel)


def _stateless_fields(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a stateless client sends along when it answers a server's question."""
    answers = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
    meta = meta_of(params)
    level = {LOG_LEVEL_KEY: meta[LOG_LEVEL_KEY]} if LOG_LEVEL_KEY in meta else {}
    return {**answers, "_meta": {CAPABILITIES_KEY: meta.get(CAPABILITIES_KEY), **level}}


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
