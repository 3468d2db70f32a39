"""What the tool router offers, whichever door it is asked at: tools, resources and prompts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from evercontext.access.router_projects import Projects
from evercontext.app import EverContext
from evercontext.app.catalog import cloud_of, strategy_in
from evercontext.catalog.entry import Card
from evercontext.catalog.resources import Shelves
from evercontext.catalog.tools import EXECUTE, META, Catalog
from evercontext.domain.caller_scope import NOTHING, Aside, Hear
from evercontext.domain.caller_scope import Scope as Sight
from evercontext.domain.event import Audit
from evercontext.domain.principal import Principal
from evercontext.domain.tool import Caller, Door, ToolResult
from evercontext.mcp import json_rpc, revisions
from evercontext.mcp.json_rpc import RpcError
from evercontext.server.exposed_tools import at_the_router
from evercontext.server.router.authentication import Visitor
from evercontext.server.router.results import as_mcp, direct_name, line_of, shown
from evercontext.tools.audit_line import printable
from evercontext.tools.toolbox import Toolbox

_LISTS = {
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resources/templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}


class Question(Protocol):
    """One question at a door: how it came, and where its progress and its line go."""

    @property
    def trace_id(self) -> str:
        """What everything about it is found by."""
        ...

    @property
    def stateless(self) -> bool:
        """True in the era without handshakes."""
        ...

    def hear(self, token: str | int) -> Hear | None:
        """Whom to tell of progress under the client's token; ``None`` if it cannot be told."""
        ...

    def record(self, line: Audit) -> None:
        """Leave the line of the audit."""
        ...


class Offer:
    """Answers what is asked after the greeting, for whoever the door says is asking."""

    def __init__(self, app: EverContext) -> None:
        self._strategy_of = strategy_in(Projects(app.store))
        self._servers = servers = app.catalog.servers
        self._shelves = Shelves(servers)
        self._catalog = Catalog(servers, _nobody, self._strategy_of, cloud_of(app.settings))
        commands = app.settings.allow_commands
        self._toolbox: Toolbox = at_the_router(app.toolbox, self._catalog, allow_commands=commands)

    async def answer(
        self, call: json_rpc.Call, visitor: Visitor, question: Question
    ) -> dict[str, Any] | bytes:
        """Answer one method; bytes are a whole answer already."""
        if call.method == "tools/list":
            return {"tools": await self._list(visitor)}
        if call.method == "tools/call":
            return await self._tool(call, visitor, question)
        if call.method in _LISTS:
            what, field = _LISTS[call.method]
            return {field: await self._shelves.list(what, visitor.sight)}
        if call.method in ("resources/read", "prompts/get"):
            return await self._fetch(call, visitor, question)
        if call.method == "logging/setLevel":
            return {}
        message = f"{printable(call.method, 80)} is not offered here"
        raise RpcError(json_rpc.METHOD_NOT_FOUND, message)

    async def state(self, kind: str, sight: Sight) -> tuple[object, ...]:
        """What compares equal as long as a list of ``tools``, ``resources`` or ``prompts`` does."""
        if kind == "tools" and await self._strategy_of(sight) is not None:
            return ("the two tools",)
        return await self._servers.state(sight)

    async def _list(self, visitor: Visitor) -> list[dict[str, Any]]:
        if await self._strategy_of(visitor.sight) is not None:
            return [shown(tool.name, tool) for tool in self._catalog.tools()]
        return [shown(direct_name(card), card) for card in await self._cards(visitor)]

    async def _cards(self, visitor: Visitor) -> list[Card]:
        caller = Caller("list", Door.MCP, scope=visitor.sight, road=self._toolbox)
        return await self._catalog.cards(caller)

    async def _fetch(
        self, call: json_rpc.Call, visitor: Visitor, question: Question
    ) -> dict[str, Any]:
        wanted = call.params.get("uri" if call.method == "resources/read" else "name")
        if not isinstance(wanted, str):
            raise RpcError(json_rpc.INVALID_PARAMS, "say what is wanted")
        given = call.params.get("arguments")
        filled = given if isinstance(given, dict) else {}
        more = _continued(call.params) if question.stateless else {}
        started = time.monotonic()
        answer = await (
            self._shelves.read(wanted, visitor.sight, more)
            if call.method == "resources/read"
            else self._shelves.get(wanted, filled, visitor.sight, more)
        )
        if answer is None:
            raise RpcError(json_rpc.INVALID_PARAMS, f"there is no {printable(wanted, 140)!r}")
        result = ToolResult(text="", data=answer.value)
        question.record(line_of(call, call.method, wanted, visitor, result, _since(started)))
        return dict(answer.value)

    async def _tool(self, call: json_rpc.Call, visitor: Visitor, question: Question) -> bytes:
        name, given = call.params.get("name"), call.params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(given, dict):
            raise RpcError(json_rpc.INVALID_PARAMS, "a call has a name and arguments")
        if name not in META:
            name, given = EXECUTE, {"toolKey": await self._key(name, visitor), "arguments": given}
        trace_id, started = question.trace_id, time.monotonic()
        principal = Principal(visitor.user, visitor.project, visitor.token)
        aside = _aside(call, question)
        caller = Caller(trace_id, Door.MCP, principal=principal, scope=visitor.sight, aside=aside)
        result = await self._toolbox.call(name, given, caller)
        key = given.get("toolKey")
        question.record(line_of(call, name, key, visitor, result, _since(started)))
        return as_mcp(call.id, result, trace_id, question.stateless)

    async def _key(self, name: str, visitor: Visitor) -> str:
        """The key behind a name of the whole list; only there are tools called directly."""
        if await self._strategy_of(visitor.sight) is None:
            for card in await self._cards(visitor):
                if direct_name(card) == name:
                    return card.key
        raise RpcError(json_rpc.INVALID_PARAMS, f"there is no tool {name[:80]!r}")


async def _nobody(caller: Caller) -> Sight:
    # Every call here says what it may see; one that does not sees nothing.
    return Sight(servers=frozenset(), own_root=False)


def _aside(call: json_rpc.Call, question: Question) -> Aside:
    """What goes along with a call: who hears of its progress, what a client was asked for."""
    token = revisions.meta_of(call.params).get("progressToken")
    known = isinstance(token, str | int) and not isinstance(token, bool)
    hear = question.hear(token) if known else None  # type: ignore[arg-type]
    if hear is None and not question.stateless:
        return NOTHING
    return Aside(hear, _continued(call.params) if question.stateless else {})


def _continued(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a stateless client brings when it comes back with what a server asked for."""
    answers = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
    able = revisions.meta_of(params).get(revisions.CAPABILITIES_KEY)
    return {**answers, "_meta": {revisions.CAPABILITIES_KEY: able}}


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
