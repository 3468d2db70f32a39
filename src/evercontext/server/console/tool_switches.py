"""List and switch tools: servers with state, tools with their switches, projects, tokens, calls.

No server is added here: a command line that a page could set would be a command line that a page
could run. That is done at the terminal (``evercontext servers add``).
"""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress
from dataclasses import replace
from typing import Any

from evercontext.access.access_tokens import AccessToken, Tokens
from evercontext.access.router_projects import OWN_SEARCHES, Projects
from evercontext.catalog.plugged_search import installed_searches
from evercontext.catalog.server_lifecycle import Backend
from evercontext.catalog.server_table import ServerConfig
from evercontext.domain.caller_scope import Scope
from evercontext.errors import EverContextError, InvalidArguments
from evercontext.events.log_index import Ledger
from evercontext.server.console.kpi_history import REFUSED
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute

MOST_CALLS = 300


async def show_tools(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET tools``: everything there is to call, and who may."""
    counts: dict[str, int] = await request.feed.look(lambda ledger: dict(ledger.calls))
    return {
        "own": [_own(tool, counts) for tool in request.app.toolbox],
        "servers": [await _server(request, config, counts) for config in await _configs(request)],
        "projects": [
            dataclasses.asdict(project) for project in await Projects(request.app.store).all()
        ],
        "tokens": [_token(token) for token in await Tokens(request.app.store).all()],
        "strategies": await _strategies(),
        "cloud": request.app.settings.catalog_url is not None,
    }


async def _strategies() -> list[str]:
    """Return the ways to look for tools: ours, and those of installed packages."""
    return [*OWN_SEARCHES, *await asyncio.to_thread(installed_searches)]


async def _configs(request: ConsoleRequest) -> list[ServerConfig]:
    return await request.app.catalog.servers.table.all()


def _own(tool: Any, counts: dict[str, int]) -> dict[str, Any]:
    effects = [effect.name.lower() for effect in tool.effects if effect.name]
    shown = {"name": tool.name, "description": tool.description, "origin": tool.origin}
    return {**shown, "effects": effects, "calls": counts.get(tool.name, 0)}


async def _server(
    request: ConsoleRequest, config: ServerConfig, counts: dict[str, int]
) -> dict[str, Any]:
    servers = request.app.catalog.servers
    pins = await servers.table.pins(config.id)
    backend = await _backend(request, config)
    entries = (backend.known if backend else None) or {}
    return {
        "id": config.id,
        "transport": "stdio" if config.argv else "http",
        "reached_by": config.reached_by,
        "env": sorted(config.env),
        "project": config.project,
        "enabled": config.enabled,
        **_state(backend),
        "tools": [
            {
                "name": name,
                "description": entries[name].description if name in entries else "",
                "on": config.allows(name),
                "held": held is not None,
                "calls": counts.get(f"{config.id}:{name}", 0),
            }
            for name, (_, held) in sorted(pins.items())
        ],
    }


async def _backend(request: ConsoleRequest, config: ServerConfig) -> Backend | None:
    seen = await request.app.catalog.servers.visible(Scope(config.project or None))
    return next((backend for backend in seen if backend.config.id == config.id), None)


def _state(backend: Backend | None) -> dict[str, Any]:
    if backend is None:
        return {"state": "off", "problem": None, "retry_in": None, "warnings": []}
    return {
        "state": backend.state,
        "problem": backend.problem if backend.state == "failed" else None,
        "retry_in": backend.retry_in,
        "warnings": backend.warnings[:10],
    }


def _token(token: AccessToken) -> dict[str, Any]:
    return {
        "name": token.name,
        "projects": None if token.projects is None else sorted(token.projects),
        "servers": None if token.servers is None else sorted(token.servers),
        "created_at": token.created_at,
        "revoked_at": token.revoked_at,
    }


async def check_server(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST servers/*/check``: start what was added at the terminal, and list its tools."""
    config = await request.app.catalog.servers.table.get(request.parts[0])
    backend = await _backend(request, config)
    if backend is not None:
        with suppress(EverContextError):
            await backend.entries()
    counts: dict[str, int] = await request.feed.look(lambda ledger: dict(ledger.calls))
    return await _server(request, config, counts)


async def switch_server(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST servers/*``: switch a server on or off; what it runs is not changed here."""
    table = request.app.catalog.servers.table
    config = await table.get(request.parts[0])
    await table.put(replace(config, enabled=request.switch("enabled")))
    return {"id": config.id, "enabled": request.switch("enabled")}


async def switch_tool(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST servers/*/tools/*``: switch one of its tools on or off."""
    table = request.app.catalog.servers.table
    server, tool = request.parts
    config = await table.get(server)
    if tool not in await table.pins(server):
        raise InvalidArguments("this server has never shown such a tool")
    rights = {**config.tool_permissions, tool: request.switch("on")}
    await table.put(replace(config, tool_permissions=rights))
    return {"id": server, "tool": tool, "on": request.switch("on")}


async def set_project(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST projects/*``: Context Optimization, or ``null`` for every tool in the list."""
    strategy = request.body.get("optimization", "")
    if strategy is not None and strategy not in (strategies := await _strategies()):
        raise InvalidArguments(f"optimization is null or one of {', '.join(strategies)}")
    projects = Projects(request.app.store)
    project = replace(await projects.get(request.parts[0]), optimization=strategy)
    await projects.put(project)
    return dataclasses.asdict(project)


async def revoke_token(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST tokens/*/revoke``: its next call is refused."""
    await Tokens(request.app.store).revoke(request.parts[0])
    return {"revoked": request.parts[0]}


async def list_calls(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET calls``: the newest requests, or those refused with 401 or 403."""
    refused = request.query.get("refused") == "1"

    def read(ledger: Ledger) -> dict[str, Any]:
        newest = list(reversed(ledger.audits))
        events = ledger.read(newest if refused else newest[:MOST_CALLS])
        shown = [e for e in events if not refused or e["data"].get("status") in REFUSED]
        lost = sum(event["data"].get("status") in REFUSED for event in events)
        rows = [
            {"id": e["id"], "at": e["at"], "trace_id": e["trace_id"], **e["data"]} for e in shown
        ]
        return {"calls": rows[:MOST_CALLS], "refused": lost}

    return await request.feed.look(read)


ROUTES = (
    ConsoleRoute("GET", "tools", show_tools),
    ConsoleRoute("GET", "calls", list_calls),
    ConsoleRoute("POST", "servers/*", switch_server),
    ConsoleRoute("POST", "servers/*/check", check_server),
    ConsoleRoute("POST", "servers/*/tools/*", switch_tool),
    ConsoleRoute("POST", "projects/*", set_project),
    ConsoleRoute("POST", "tokens/*/revoke", revoke_token),
)
