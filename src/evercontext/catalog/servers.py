"""All outside servers: which of them a caller sees, and none that waits for another."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from evercontext.catalog.arguments import ArgumentCheck
from evercontext.catalog.backend import Backend, Surroundings
from evercontext.catalog.entry import CatalogEntry
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.domain.caller_scope import NOTHING, Aside, Scope
from evercontext.domain.tool import OUTSIDE, Arguments, Caller, Tool, ToolResult
from evercontext.errors import EverContextError, ServerProblem, ToolProblem
from evercontext.events.redaction import Clean, unchanged
from evercontext.mcp.messages import Result

ADOPTED = "server "
"""What the origin of an outside tool begins with."""
PATIENCE = 2.5
"""Seconds that a listing waits for servers that are not there yet; they go on starting."""


class Servers:
    """The servers of the table, each connected when first asked for."""

    def __init__(self, table: ServerTable, around: Surroundings) -> None:
        self.table = table
        self._around = around
        self._configs: list[ServerConfig] = []
        self._backends: dict[str, Backend] = {}
        self._working: dict[str, asyncio.Task[tuple[CatalogEntry, ...]]] = {}

    async def visible(self, scope: Scope) -> list[Backend]:
        """The backends of a scope; the table is read every time, so that a change holds at once."""
        await self._reload()
        return [self._backend(config) for config in self._configs if scope.sees(config)]

    async def state(self, scope: Scope) -> tuple[object, ...]:
        """What compares equal as long as a scope is offered the same; starts no server."""
        await self._reload()
        seen = [config for config in self._configs if scope.sees(config)]
        backends = [self._backends.get(config.id) for config in seen]
        return (*seen, *(backend.generation if backend else 0 for backend in backends))

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

    async def gather(self, scope: Scope, patience: float = PATIENCE) -> list[CatalogEntry]:
        """The tools of every server that answers in time."""
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
            known = self._backends[config.id] = Backend(config, self.table, self._around)
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
        result = await backend.call(entry, arguments, aside.hear, aside.more)
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


def asks_for_input(answer: Mapping[str, Any]) -> bool:
    """True for an answer of the stateless revision that is a question back."""
    return answer.get("resultType") == "input_required"


def as_tool_result(result: Result) -> ToolResult:
    """Return a server's answer; an error it reports is an error of the call."""
    answer: dict[str, Any] = result.value
    content = answer.get("content")
    parts = content if isinstance(content, list) else []
    texts = [str(p.get("text", "")) for p in parts if isinstance(p, dict) and "text" in p]
    text = "\n".join(texts)
    error: EverContextError | None = None
    if answer.get("isError") is True:
        error = ToolProblem(text[:2_000] or "the tool failed and did not say why")
    return ToolResult(text=text, data=answer, error=error, raw=result.raw)
