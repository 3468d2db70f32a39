"""The tool catalog of a house: its servers, whose they are, and how tools are looked for."""

from __future__ import annotations

from collections.abc import Callable

from evercontext.access.router_projects import Projects
from evercontext.catalog.backend import Surroundings
from evercontext.catalog.cloud import CloudSearch
from evercontext.catalog.server_table import ServerTable
from evercontext.catalog.servers import Servers
from evercontext.catalog.tools import Catalog, StrategyOf
from evercontext.domain.caller_scope import Scope
from evercontext.domain.event import Notice
from evercontext.domain.tool import Caller
from evercontext.events.log import EventLog
from evercontext.settings import Settings, process_environment
from evercontext.storage.store import Store

Learn = Callable[[list[str]], None]
"""Told the credentials of servers, so that no log shows them."""


def forget(secrets: list[str]) -> None:
    """For places that write no log."""


def open_catalog(
    settings: Settings, store: Store, events: EventLog, on_secrets: Learn = forget
) -> Catalog:
    """Return the catalog for whoever works in this root: the project bound to it counts."""
    projects = Projects(store)

    async def scope_of(caller: Caller) -> Scope:
        return await scope_at(settings, projects)

    servers = open_servers(settings, store, events, on_secrets)
    return Catalog(servers, scope_of, strategy_in(projects), cloud_of(settings))


async def scope_at(settings: Settings, projects: Projects) -> Scope:
    """What whoever works in this root may see: the project bound to it counts."""
    bound = await projects.of_directory(settings.root.resolve())
    return Scope(bound.id if bound else None)


def cloud_of(settings: Settings) -> CloudSearch | None:
    """Somebody else's search, where one is set."""
    url = settings.catalog_url
    return CloudSearch(url, settings.catalog_token) if url else None


def open_servers(
    settings: Settings, store: Store, events: EventLog, on_secrets: Learn = forget
) -> Servers:
    """The servers of the store; nothing is started yet."""

    def held(server: str, tools: list[str]) -> None:
        names = ", ".join(tools)
        text = f"server {server} changed its tools {names}: held until approved"
        fix = f"evercontext servers approve {server}"
        events.emit(Notice(level="warning", text=f"{text}. See: {fix}"), trace_id="catalog")

    around = Surroundings(
        process_environment(), settings.root, settings.home / "servers", held, on_secrets
    )
    return Servers(ServerTable(store), around)


def strategy_in(projects: Projects) -> StrategyOf:
    """How tools are looked for in a project; the best way where there is none."""

    async def strategy_of(scope: Scope) -> str | None:
        if not scope.project:
            return "hybrid"
        found = {project.id: project.optimization for project in await projects.all()}
        return found.get(scope.project, "hybrid")

    return strategy_of
