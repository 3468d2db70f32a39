"""Start an outside server when first needed, restart it with backoff, and stop it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.catalog.arguments import ArgumentCheck
from evercontext.catalog.server_log import ServerLog
from evercontext.catalog.server_state import ServerState, leave_state
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.catalog.validation import (
    accept_tools,
    digest_of,
    earlier_digest_of,
    encode_definition,
)
from evercontext.domain.caller_scope import NOTHING, Aside
from evercontext.domain.tool import Tool
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import EverContextError, ServerGone, ServerProblem, ServerTimeout
from evercontext.events.redaction import Redactor, secret_values
from evercontext.mcp.client.exchange import McpConnection, Notified, ignore_notification
from evercontext.mcp.client.handshake import Handshake, discover, shake_hands
from evercontext.mcp.client.http import HttpConnection, HttpRefused, SessionExpired
from evercontext.mcp.client.http1 import proxy_for
from evercontext.mcp.client.listing import Listed, list_all
from evercontext.mcp.client.sse import SseConnection
from evercontext.mcp.client.stdio import StdioConnection
from evercontext.mcp.messages import Params, Result
from evercontext.mcp.revisions import STATELESS_REVISION
from evercontext.process.environment import filtered

_LONGEST_PAUSE = 60.0
_LASTING = 10.0
LIST_KINDS = ("tools", "resources", "prompts")
FRESH_SECONDS = 300.0
"""How long a list is believed of a server that has no way to say that it changed."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_LONGEST_PROBLEM = 500
_MOST_WARNINGS = 100
_NO_STREAMABLE = (404, 405)


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds a server gets for the handshake and for a list; calls have the server's own limit."""

    handshake: float = 10.0
    listing: float = 10.0


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """What a server is started with and whom it is reported to."""

    environment: Mapping[str, str] = field(repr=False)
    root: Path
    logs: Path | None = None
    """The folder where what servers say on stderr is kept."""
    on_held: Callable[[str, list[str]], None] = lambda server, tools: None
    on_secrets: Callable[[list[str]], None] = lambda secrets: None
    """Told the credentials of a server before they are used, so that no log shows them."""
    patience: Patience = Patience()


class Backend:
    """A server and its tools. Calls are never repeated: they may have had effects."""

    def __init__(
        self,
        config: ServerConfig,
        table: ServerTable,
        around: ServerEnvironment,
        on_notified: Notified = ignore_notification,
        client_capabilities: Params | None = None,
    ) -> None:
        self.config = config
        self._on_notified, self._client_capabilities = on_notified, client_capabilities
        self._log_level: str | None = None
        self._stateless: McpConnection | None = None
        self._knows_stateless = True
        # Servers may print their credentials, and their stderr is kept in a log.
        self._secrets = Redactor(secret_values(around.environment))
        self.log = ServerLog(config.id, around.logs, self._secrets.masked)
        self.warnings: list[str] = []
        self.held: dict[str, str] = {}
        """Tools whose definition is not the trusted one, with the new digest."""
        self.problem: str | None = None
        self.next_try = 0.0
        self.handshake: Handshake | None = None
        self.checks: dict[str, ArgumentCheck] = {}
        self.tools: dict[str, Tool] = {}
        """Tools that were called, ready to be called again; forgotten with the list."""
        self._table, self._around = table, around
        self._connection: McpConnection | None = None
        self._entries: dict[str, CatalogEntry] | None = None
        self._pinned: tuple[CatalogEntry, ...] | None = None
        self._fresh_until = 0.0
        self._failures = 0
        self._since = 0.0
        self._connecting, self._listing = asyncio.Lock(), asyncio.Lock()
        self._old_transport = config.sse
        self.generations = dict.fromkeys(LIST_KINDS, 0)
        """For each list, a number that grows whenever the server may offer something else."""

    def clean(self, text: str) -> str:
        """Return a text of the server without the credentials it was given."""
        return self._secrets.without_known(text)

    @property
    def state(self) -> str:
        """``running``, ``failed`` or ``stopped``."""
        if self._connection is not None and self._connection.open:
            return "running"
        return "failed" if self.problem else "stopped"

    @property
    def retry_in(self) -> float | None:
        """Seconds until a failed server is tried again; ``None`` if it is not waiting."""
        left = self.next_try - time.monotonic()
        return left if left > 0 and self.state == "failed" else None

    @property
    def connection(self) -> McpConnection | None:
        """The connection, if it is open or was."""
        return self._connection

    @property
    def known(self) -> Mapping[str, CatalogEntry] | None:
        """The tools by name, if the list is fresh and none of them is held."""
        connection = self._connection
        if connection is None or not connection.open or self._entries is None or self.held:
            return None
        return (
            self._entries
            if connection.hears_changes or time.monotonic() < self._fresh_until
            else None
        )

    async def entries(self) -> tuple[CatalogEntry, ...]:
        """Return the tools that may be used; listed once, and again when the server says so."""
        if (known := self.known) is not None:
            return tuple(known.values())
        connection = await self._connected()
        async with self._listing:
            stale = not connection.hears_changes and time.monotonic() >= self._fresh_until
            if self._entries is None or stale:
                self._entries = await self._list(connection)
        await self._release_approved()
        return tuple(
            entry for entry in (self._entries or {}).values() if entry.name not in self.held
        )

    async def pinned_entries(self) -> tuple[CatalogEntry, ...]:
        """Return the tools as they were last trusted, for a server that has not answered yet."""
        if self._pinned is None:
            stored = await self._table.definitions(self.config.id)
            values = [json.loads(definition) for definition in stored.values()]
            self._pinned = tuple(accept_tools(self.config.id, values)[0])
        return self._pinned

    def held_entries(self) -> list[CatalogEntry]:
        """Return the definitions that wait for approval."""
        return [entry for entry in (self._entries or {}).values() if entry.name in self.held]

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        aside: Aside = NOTHING,
        headers: Mapping[str, str] | None = None,
    ) -> Result:
        """Send one request; its result is an object.

        A request of the stateless revision is sent in that revision, where the server knows it.
        """
        connection = await self._connected()
        seconds = self.config.call_seconds
        if aside.more:
            connection = await self._in_stateless_revision() or connection
        along = (seconds, aside.hear, headers, aside.client)
        try:
            result = await connection.request(method, params, *along)
        except SessionExpired:
            # The one refusal that says for certain that nothing was carried out.
            self.next_try = 0.0
            connection = await self._connected()
            result = await connection.request(method, params, *along)
        if not isinstance(result.value, dict):
            raise ServerProblem(f"{self.config.id} answered with no result")
        return result

    async def _in_stateless_revision(self) -> McpConnection | None:
        """Return a connection in the stateless revision beside the usual one, where there is one.

        Over HTTP a second connection costs nothing; a child process has one conversation.
        """
        if self._stateless is not None and self._stateless.open:
            return self._stateless
        spoken = self.handshake.version if self.handshake else ""
        has_choice = bool(self.config.url) and not self._old_transport
        if not has_choice or not self._knows_stateless or spoken == STATELESS_REVISION:
            return None
        connection = await self._open()
        try:
            await discover(self.config.id, connection, self._around.patience.handshake)
        except ServerProblem:
            self._knows_stateless = False
            await connection.close()
            return None
        self._stateless = connection
        return connection

    async def set_log_level(self, level: str) -> None:
        """Have the server send log messages of a level, now and after every restart."""
        self._log_level = level
        offers = self.handshake.capabilities if self.handshake else frozenset()
        if self.state == "running" and "logging" in offers:
            await self.ask("logging/setLevel", {"level": level})

    async def list_all(self, what: str) -> Listed:
        """List ``resources``, ``resources/templates`` or ``prompts``; nothing if it has none."""
        connection = await self._connected()
        offers = self.handshake.capabilities if self.handshake else frozenset()
        if what.partition("/")[0] not in offers:
            return Listed()
        return await list_all(connection, what, self._around.patience.listing)

    async def close(self) -> None:
        """Close the connection and end the server."""
        connection, self._connection = self._connection, None
        stateless, self._stateless = self._stateless, None
        if stateless is not None:
            await stateless.close()
        if connection is not None:
            await connection.close()
            self._write_state()

    async def _connected(self) -> McpConnection:
        if self._connection is not None and self._connection.open:
            return self._connection
        async with self._connecting:
            if self._connection is not None and self._connection.open:
                return self._connection
            self._refuse_until_next_try()
            await self.close()
            try:
                self._connection = await self._connect()
            except EverContextError as problem:
                self._failed(str(problem))
                raise
            self._forget_lists()
            self.problem = None
            self._since = time.monotonic()
            self.next_try = self._since + self._pause()
            self._write_state()
            return self._connection

    def _refuse_until_next_try(self) -> None:
        left = self.next_try - time.monotonic()
        if left > 0:
            why = self.problem or "it ended"
            raise ServerGone(f"server {self.config.id} is down ({why}); next try in {left:.0f} s")
        if self._connection is not None:
            # A connection that lasted is forgiven; one that dies at once is not.
            lasted = time.monotonic() - self._since > _LASTING
            self._failures = 0 if lasted else self._failures + 1

    def _pause(self) -> float:
        return min(_LONGEST_PAUSE, 0.5 * 2.0**self._failures)

    def _failed(self, problem: str) -> None:
        self._failures += 1
        self.problem = escaped_line(self._secrets.masked(problem))[:_LONGEST_PROBLEM]
        self.next_try = time.monotonic() + self._pause()
        self._write_state()

    def _write_state(self) -> None:
        """Write the state for other processes, such as the command that lists servers."""
        if self._around.logs is None:
            return
        wait = self.retry_in
        state = ServerState(
            self.config.id,
            self.state,
            self.problem,
            None if wait is None else time.time() + wait,
            len(self._entries or ()),
            self.handshake.version if self.handshake else "",
            os.getpid(),
        )
        leave_state(self._around.logs, state)

    async def _connect(self) -> McpConnection:
        try:
            return await self._shake_hands_over(await self._open())
        except HttpRefused as refusal:
            # Servers from before Streamable HTTP refuse the POST and have a stream instead.
            if refusal.status not in _NO_STREAMABLE or self._old_transport:
                raise
            self._old_transport = True
            try:
                return await self._shake_hands_over(await self._open())
            except ServerProblem:
                self._old_transport = False
                raise refusal from None

    async def _shake_hands_over(self, connection: McpConnection) -> McpConnection:
        try:
            self.handshake = await shake_hands(
                self.config.id,
                connection,
                self._around.patience.handshake,
                self._client_capabilities,
            )
            await connection.subscribe()
            if self._log_level is not None and "logging" in self.handshake.capabilities:
                level = {"level": self._log_level}
                seconds = self._around.patience.handshake
                await connection.request("logging/setLevel", level, seconds)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _open(self) -> McpConnection:
        config = self.config
        headers = {name: self._filled(value) for name, value in config.headers.items()}
        env = {name: self._filled(value) for name, value in config.env.items()}
        secrets = config.secrets(headers, env)
        self._secrets.learn(secrets)
        self._around.on_secrets(secrets)
        if config.url:
            proxy = proxy_for(config.url, self._around.environment)
            reached = (
                config.id,
                config.url,
                headers,
                self._list_changed,
                proxy,
                self._on_notified,
            )
            return (
                await SseConnection.start(*reached)
                if self._old_transport
                else HttpConnection(*reached)
            )
        return await StdioConnection.start(
            config.id,
            [self._filled(part) for part in config.argv],
            cwd=Path(config.cwd) if config.cwd else self._around.root,
            env={**filtered(self._around.environment), **env},
            log=self.log.extend,
            on_changed=self._list_changed,
            on_notified=self._on_notified,
        )

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: self._around.environment.get(match[1], ""), text)

    def _forget_lists(self) -> None:
        for kind in LIST_KINDS:
            self._list_changed(kind)

    def _list_changed(self, kind: str) -> None:
        if kind == "tools":
            self._entries = None
        if kind in self.generations:
            self.generations[kind] += 1
            self._on_notified(f"notifications/{kind}/list_changed", {})

    async def _list(self, connection: McpConnection) -> dict[str, CatalogEntry]:
        try:
            listed = await list_all(connection, "tools", self._around.patience.listing)
        except ServerTimeout as late:
            await self.close()
            self._failed(str(late))
            raise ServerTimeout(f"{self.config.id}: {late}") from None
        entries, warnings = accept_tools(self.config.id, listed.items)
        if listed.endless:
            warnings.insert(0, "the list of tools does not end: the rest was left out")
        flagged = [
            escaped_line(f"{entry.name} says: {', '.join(flags)}")
            for entry in entries
            if (flags := entry.flags)
        ]
        self.warnings = [*warnings[:_MOST_WARNINGS], *flagged]
        await self._pin(entries)
        self._fresh_until = time.monotonic() + (listed.seconds or FRESH_SECONDS)
        self.checks = {entry.name: ArgumentCheck(entry.schema) for entry in entries}
        self.tools = {}
        self._entries = {entry.name: entry for entry in entries}
        self._pinned = None
        self._write_state()
        return self._entries

    async def _pin(self, entries: list[CatalogEntry]) -> None:
        id = self.config.id
        pins, stored = await self._table.pins(id), await self._table.definitions(id)
        digests = {entry.name: digest_of(entry) for entry in entries}
        definitions = {entry.name: encode_definition(entry) for entry in entries}
        new = {name: digest for name, digest in digests.items() if name not in pins}
        # Once, only name, description and schema were pinned, and their definition not stored.
        earlier = {
            entry.name: digests[entry.name]
            for entry in entries
            if entry.name in pins
            and entry.name not in stored
            and pins[entry.name][0] in (earlier_digest_of(entry), digests[entry.name])
        }
        self.held = {
            name: digest
            for name, digest in digests.items()
            if name in pins and name not in earlier and pins[name][0] != digest
        }
        if new:
            await self._table.pin(id, new, definitions)
        if earlier:
            await self._table.add_definitions(id, earlier, definitions)
        if self.held:
            await self._table.hold(self.config.id, self.held)
            self._around.on_held(self.config.id, sorted(self.held))

    async def _release_approved(self) -> None:
        """Release tools that were approved meanwhile, perhaps by another process."""
        if not self.held:
            return
        pins = await self._table.pins(self.config.id)
        trusted = {name: digest for name, (digest, _) in pins.items()}
        self.held = {n: digest for n, digest in self.held.items() if trusted.get(n) != digest}
