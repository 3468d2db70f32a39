"""Open the tool catalog: its servers, their scope, and the search for tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evercontext.access.router_projects import Projects
from evercontext.catalog.discovery_tools import Catalog
from evercontext.catalog.external_search import CloudSearch
from evercontext.catalog.plugged_search import PluggedSearch
from evercontext.catalog.server_lifecycle import ServerEnvironment
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.servers import Servers
from evercontext.catalog.session_servers import SessionServerTable
from evercontext.domain.event import Notice
from evercontext.errors import StoreGone
from evercontext.events.log import EventLog
from evercontext.settings import Settings, process_environment
from evercontext.storage.store import Store

Learn = Callable[[list[str]], None]
"""Receives the credentials of servers, so that no log shows them."""


def ignore_secrets(secrets: list[str]) -> None:
    """Ignore credentials where no log is written."""


def open_catalog(
    settings: Settings,
    store: Store,
    events: EventLog,
    on_secrets: Learn = ignore_secrets,
    session: Sequence[ServerConfig] = (),
) -> Catalog:
    """Open the catalog for the project that is bound to this root.

    ``session`` are servers for this time only, beside those of the store.
    """
    servers = open_servers(settings, store, events, on_secrets, session)
    return Catalog(
        servers,
        Projects(store),
        settings.root,
        cloud_of(settings),
        plugged=partial(PluggedSearch, settings=settings),
    )


def cloud_of(settings: Settings) -> CloudSearch | None:
    """Return the external search, if one is configured."""
    url = settings.catalog_url
    return CloudSearch(url, settings.catalog_token) if url else None


def open_servers(
    settings: Settings,
    store: Store,
    events: EventLog,
    on_secrets: Learn = ignore_secrets,
    session: Sequence[ServerConfig] = (),
) -> Servers:
    """Return the servers of the store; none is started yet."""

    def report_held(server: str, tools: list[str]) -> None:
        names = ", ".join(tools)
        text = f"server {server} changed its tools {names}: held until approved"
        fix = f"evercontext servers approve {server}"
        events.emit(Notice(level="warning", text=f"{text}. See: {fix}"), trace_id="catalog")

    around = ServerEnvironment(
        process_environment(), settings.root, settings.home / "servers", report_held, on_secrets
    )
    table = SessionServerTable(store, session) if session else ServerTable(store)
    return Servers(table, around)


async def has_servers(catalog: Catalog) -> bool:
    """Tell whether outside servers are known; an unreachable database counts as none."""
    try:
        return bool(await catalog.servers.table.all())
    except StoreGone:
        return False
