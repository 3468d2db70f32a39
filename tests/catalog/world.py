"""Servers that behave as told, and what a test needs to talk to them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evercontext.access.router_projects import Projects
from evercontext.catalog.discovery_tools import Catalog
from evercontext.catalog.external_search import CloudSearch
from evercontext.catalog.server_lifecycle import Patience, ServerEnvironment
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.servers import Servers
from evercontext.domain.caller_scope import Scope
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.settings import process_environment
from evercontext.storage.sqlite import SqliteStore
from evercontext.tools.toolbox import Toolbox

ODD_SERVER = Path(__file__).with_name("odd_server.py")
RICH_SERVER = Path(__file__).with_name("rich_server.py")
EVERYBODY = Scope()


def odd(id: str, how: str = "good", *more: str, **options: Any) -> ServerConfig:
    """A server that behaves as ``how`` says."""
    return ServerConfig(id, (sys.executable, str(ODD_SERVER), how, *more), **options)


@asynccontextmanager
async def servers(
    folder: Path, *configs: ServerConfig, patience: Patience | None = None
) -> AsyncIterator[Servers]:
    """These servers in a real store, closed at the end."""
    store = await SqliteStore.open(folder / "house.db")
    table = ServerTable(store)
    for config in configs:
        await table.put(config)
    around = ServerEnvironment(
        process_environment(), folder, folder / "logs", patience=patience or Patience()
    )
    opened = Servers(table, around)
    try:
        yield opened
    finally:
        await opened.close()
        await store.close()


@asynccontextmanager
async def toolbox(
    folder: Path, opened: Servers, scope: Scope = EVERYBODY, cloud: CloudSearch | None = None
) -> AsyncIterator[Toolbox]:
    """The two tools over these servers."""

    events = EventLog(folder / "traces", Redactor([]))
    store = await SqliteStore.open(folder / "house.db")
    try:
        catalog = ScopedCatalog(opened, Projects(store), cloud=cloud)
        catalog.scope, catalog.search = scope, "cloud" if cloud else "hybrid"
        yield Toolbox(catalog.tools(), events)
    finally:
        await store.close()
        events.close()


class ScopedCatalog(Catalog):
    """A catalog for callers of one scope, with one way to search."""

    scope = EVERYBODY
    search = "hybrid"

    async def default_scope(self) -> Scope:
        """Return the scope of the test."""
        return self.scope

    async def strategy(self, scope: Scope) -> str | None:
        """Return the strategy of the test."""
        return self.search


def caller(mode: Mode = Mode.AGENT) -> Caller:
    """Somebody at the MCP door."""
    return Caller("t" * 8, Door.MCP, mode)


async def run(opened: Servers, key: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool of a server and return its answer."""
    tool = await opened.find(key, EVERYBODY)
    assert tool is not None, key
    result = await tool.run(arguments, caller())
    return dict(result.data)
