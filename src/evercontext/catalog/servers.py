"""Hold all outside servers and filter them by caller; a slow server delays no other."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from evercontext.catalog.arguments import ArgumentCheck
from evercontext.catalog.call_results import as_tool_result, asks_for_input
from evercontext.catalog.server_lifecycle import Backend, ServerEnvironment
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.domain.caller_scope import NOTHING, Aside, Scope
from evercontext.domain.tool import OUTSIDE, Arguments, Caller, Tool, ToolResult
from evercontext.errors import EverContextError, ServerProblem
from evercontext.events.redaction import Clean, unchanged
from evercontext.mcp.messages import Params

ADOPTED = "server "
"""What the origin of an outside tool begins with."""
_MOST_MISSING = 10
PATIENCE = 2.5
"""Seconds that a listing waits for servers that are not there yet; they go on starting."""


Listener = Callable[[str, str, dict[str, Any]], None]
"""Takes the name of a server, and a notification's method and parameters."""


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools that can be found now."""

    entries: tuple[CatalogEntry, ...]
    notice: str
    """Which servers are missing or still starting, and why; empty if none is."""


class Servers:
    """The servers of the table, each connected when first asked for."""

    def __init__(self, table: ServerTable, around: ServerEnvironment) -> None:
        self.table = table
        self.around = around
        self._configs: list[ServerConfig] = []
        self._backends: dict[str, Backend] = {}
        self._working: dict[str, asyncio.Task[tuple[CatalogEntry, ...]]] = {}
        self.client_capabilities: Params = {}
        """What the clients behind us can be asked for; told to servers that start from now on."""
        self.listeners: set[Listener] = set()
        """Told what servers say to nobody in particular: log messages, updates of resources."""

    def _notified(self, server: str, method: str, params: dict[str, Any]) -> None:
        for listener in tuple(self.listeners):
            listener(server, method, params)

    def is_visible(self, id: str, scope: Scope) -> bool:
        """Tell whether a scope sees a server that was started."""
        backend = self._backends.get(id)
        return backend is not None and scope.sees(backend.config)

    async def visible(self, scope: Scope) -> list[Backend]:
        """The backends of a scope; the table is read every time, so that a change holds at once."""
        await self._reload()
        return [self._backend(config) for config in self._configs if scope.sees(config)]

    async def state(self, scope: Scope, kind: str) -> tuple[object, ...]:
        """Return what compares equal while a list of a scope is the same; start no server."""
        await self._reload()
        seen = [config for config in self._configs if scope.sees(config)]
        backends = [self._backends.get(config.id) for config in seen]
        return (*seen, *(backend.generations[kind] if backend else 0 for backend in backends))

    async def _reload(self) -> None:
        """End what was removed or is reached in another way now; the rest goes on running."""
        configs = await self.table.all()
        if configs is self._configs:
            return
        self._configs = configs
        by_id = {config.id: config for config in configs}
        for id, backend in list(self._backends.items()):
            if by_id.get(id) != backend.config and not _only_rights(by_id.get(id), backend):
                del self._backends[id]
                await backend.close()
            elif id in by_id:
                backend.config = by_id[id]

    async def start(self, scope: Scope) -> None:
        """Begin to start every server of a scope, and wait for none."""
        for backend in await self.visible(scope):
            self._listing(backend)

    async def gather(self, scope: Scope, patience: float = PATIENCE) -> list[CatalogEntry]:
        """Return the tools of every server that answers in time."""
        backends = await self.visible(scope)
        tasks = {backend.config.id: self._listing(backend) for backend in backends}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=patience)
        return [
            entry
            for backend in backends
            if _succeeded(task := tasks[backend.config.id])
            for entry in task.result()
            if backend.config.allows(entry.name)
        ]

    async def tools_of(self, backend: Backend) -> tuple[CatalogEntry, ...]:
        """Return the tools of one server, once it has started; none if it cannot."""
        try:
            entries = await asyncio.shield(self._listing(backend))
        except EverContextError:
            return ()
        return tuple(entry for entry in entries if backend.config.allows(entry.name))

    async def offered(self, scope: Scope, known_patience: float = 0.0) -> OfferedTools:
        """Return the tools of a scope, and which servers are missing and why.

        A server that is still starting is waited for; where its tools are known from before, only
        for ``known_patience`` seconds.
        """
        backends = await self.visible(scope)
        tasks = {backend.config.id: self._listing(backend) for backend in backends}
        if tasks:
            # A moment is enough for a server whose list is there already.
            await asyncio.wait(tasks.values(), timeout=known_patience)
        pinned = {
            backend.config.id: await backend.pinned_entries()
            for backend in backends
            if not tasks[backend.config.id].done()
        }
        awaited = [task for id, task in tasks.items() if not pinned.get(id)]
        if awaited:
            await asyncio.wait(awaited, timeout=PATIENCE)
        entries: list[CatalogEntry] = []
        missing: list[str] = []
        for backend in backends:
            id, task = backend.config.id, tasks[backend.config.id]
            listed = task.result() if _succeeded(task) else ()
            if not task.done():
                listed = pinned.get(id, ())
                known = f"its {len(listed)} tools as last seen are searched" if listed else ""
                missing.append(f"{id} is still starting" + (f" ({known})" if known else ""))
            elif not _succeeded(task):
                missing.append(f"{id} is missing: {backend.problem or 'it did not answer'}")
            entries += [entry for entry in listed if backend.config.allows(entry.name)]
        return OfferedTools(tuple(entries), "; ".join(missing[:_MOST_MISSING]))

    def unheard(self) -> list[tuple[str, str]]:
        """The servers that were asked for their tools and gave none, each with why."""
        return [
            (id, self._backends[id].problem or "no answer in time")
            for id, task in self._working.items()
            if id in self._backends and not _succeeded(task)
        ]

    async def find(self, key: str, scope: Scope, aside: Aside = NOTHING) -> Tool | None:
        """The tool of that key, ready to be called; ``None`` if it is not there for this caller."""
        server, _, name = key.partition(":")
        backend = await self.backend(server, scope)
        if backend is None or not backend.config.allows(name):
            return None
        known = backend.known
        if known is None:
            entries = await asyncio.shield(self._listing(backend))
            known = {entry.name: entry for entry in entries}
        entry = known.get(name)
        if entry is None or aside is not NOTHING:
            return adopted(entry, backend, aside) if entry else None
        if name not in backend.tools:
            backend.tools[name] = adopted(entry, backend, NOTHING)
        return backend.tools[name]

    async def backend(self, id: str, scope: Scope) -> Backend | None:
        """One server, if it is there for this caller."""
        await self._reload()
        config = next((config for config in self._configs if config.id == id), None)
        return self._backend(config) if config and scope.sees(config) else None

    def cleaner(self, id: str) -> Clean:
        """What takes the credentials of a server out of its answers; ours has none."""
        known = self._backends.get(id)
        return known.clean if known else unchanged

    async def close(self) -> None:
        """End every server."""
        for task in self._working.values():
            task.cancel()
        await asyncio.gather(*self._working.values(), return_exceptions=True)
        backends = list(self._backends.values())
        await asyncio.gather(*(backend.close() for backend in backends), return_exceptions=True)
        self._backends.clear()

    def _backend(self, config: ServerConfig) -> Backend:
        known = self._backends.get(config.id)
        if known is None:
            known = self._backends[config.id] = Backend(
                config,
                self.table,
                self.around,
                partial(self._notified, config.id),
                self.client_capabilities,
            )
        return known

    def _listing(self, backend: Backend) -> asyncio.Task[tuple[CatalogEntry, ...]]:
        """The listing under way, or a new one; several callers wait for the same."""
        id = backend.config.id
        task = self._working.get(id)
        if task is None or task.done():
            task = self._working[id] = asyncio.create_task(backend.entries())
            # Read here, so that a failure nobody waits for is no surprise at exit.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task


def _succeeded(task: asyncio.Task[tuple[CatalogEntry, ...]]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _only_rights(new: ServerConfig | None, backend: Backend) -> bool:
    """True if the server itself is the same and only who may use it changed."""
    old = backend.config
    return new is not None and all(
        getattr(new, name) == getattr(old, name)
        for name in ("argv", "url", "env", "headers", "cwd", "sse")
    )


def adopted(entry: CatalogEntry, backend: Backend, aside: Aside) -> Tool:
    """Return an outside tool as one of ours; it may do anything, as far as we know."""

    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        params = {"name": entry.name, "arguments": arguments, **aside.more}
        result = await backend.ask("tools/call", params, aside, entry.mirrored(arguments))
        if asks_for_input(result.value) and not aside.more:
            raise ServerProblem(f"{entry.key} asks for input, and who called it cannot be asked")
        return as_tool_result(result)

    return Tool(
        name=entry.key,
        description=entry.description,
        arguments=entry.schema,
        effects=OUTSIDE,
        run=run,
        origin=f"{ADOPTED}{entry.server}",
        check=backend.checks.get(entry.name, ArgumentCheck({})),
        synced=False,
        # Its server's own patience ends the call.
        timeout=math.inf,
    )
