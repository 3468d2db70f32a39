"""One outside server: started when first needed, kept, restarted with patience, ended with us."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evercontext.catalog.arguments import ArgumentCheck
from evercontext.catalog.entry import Card
from evercontext.catalog.server_log import ServerLog
from evercontext.catalog.server_state import ServerState, leave_state
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.validation import adopt, digest_of
from evercontext.domain.caller_scope import Hear
from evercontext.domain.tool import Tool
from evercontext.errors import EverContextError, ServerGone, ServerProblem, ServerTimeout
from evercontext.events.redaction import Redactor, secret_values
from evercontext.mcp.client.exchange import Wire, escaped
from evercontext.mcp.client.handshake import Greeted, greet
from evercontext.mcp.client.http import HttpRefused, HttpWire, SessionExpired
from evercontext.mcp.client.http1 import proxy_for
from evercontext.mcp.client.listing import Listed, list_all
from evercontext.mcp.client.sse import SseWire
from evercontext.mcp.client.stdio import StdioWire
from evercontext.mcp.message import Answer
from evercontext.process.environment import filtered

_LONGEST_PAUSE = 60.0
_LASTING = 10.0
UNHEARD_SECONDS = 300.0
"""How long a list is believed of a server that has no way to say that it changed."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_LONGEST_PROBLEM = 500
_MOST_WARNINGS = 100
_NO_STREAMABLE = (404, 405)


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds a server gets to greet and to list its tools; a call's are the server's own."""

    greeting: float = 10.0
    listing: float = 10.0


@dataclass(frozen=True, slots=True)
class Surroundings:
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
    """A server and what is known of it. Calls are never repeated: they may have had effects."""

    def __init__(self, config: ServerConfig, table: ServerTable, around: Surroundings) -> None:
        self.config = config
        # Servers print what they are given, and a child's words are kept like our own.
        self._secrets = Redactor(secret_values(around.environment))
        self.log = ServerLog(config.id, around.logs, self._secrets.masked)
        self.warnings: list[str] = []
        self.held: dict[str, str] = {}
        """Tools whose definition is not the trusted one, with the new digest."""
        self.problem: str | None = None
        self.next_try = 0.0
        self.greeted: Greeted | None = None
        self.checks: dict[str, ArgumentCheck] = {}
        self.tools: dict[str, Tool] = {}
        """Tools that were called, ready to be called again; forgotten with the list."""
        self._table, self._around = table, around
        self._wire: Wire | None = None
        self._cards: dict[str, Card] | None = None
        self._fresh_until = 0.0
        self._failures = 0
        self._since = 0.0
        self._connecting, self._listing = asyncio.Lock(), asyncio.Lock()
        self._old_transport = config.sse
        self.generation = 0
        """Another number whenever what it offers may be something else."""

    def clean(self, text: str) -> str:
        """Return what it said without the credentials it was given."""
        return self._secrets.without_known(text)

    @property
    def state(self) -> str:
        """``running``, ``failed`` or ``stopped``."""
        if self._wire is not None and self._wire.open:
            return "running"
        return "failed" if self.problem else "stopped"

    @property
    def retry_in(self) -> float | None:
        """Seconds until a failed server is tried again; ``None`` if it is not waiting."""
        left = self.next_try - time.monotonic()
        return left if left > 0 and self.state == "failed" else None

    @property
    def wire(self) -> Wire | None:
        """The connection, if there is one."""
        return self._wire

    @property
    def known(self) -> Mapping[str, Card] | None:
        """The tools by name, if the list is at hand and fresh; held ones are left to ``cards``."""
        wire = self._wire
        if wire is None or not wire.open or self._cards is None or self.held:
            return None
        return self._cards if wire.hears or time.monotonic() < self._fresh_until else None

    async def cards(self) -> tuple[Card, ...]:
        """The tools that may be used; asked of the server once, and again when it says so."""
        if (known := self.known) is not None:
            return tuple(known.values())
        wire = await self._connected()
        async with self._listing:
            stale = not wire.hears and time.monotonic() >= self._fresh_until
            if self._cards is None or stale:
                self._cards = await self._list(wire)
        await self._look_for_approval()
        return tuple(c for c in (self._cards or {}).values() if c.name not in self.held)

    def held_cards(self) -> list[Card]:
        """The definitions that wait for approval, as the server gives them now."""
        return [card for card in (self._cards or {}).values() if card.name in self.held]

    async def call(
        self,
        card: Card,
        arguments: Mapping[str, Any],
        hear: Hear | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Call a tool and return the server's answer as it is."""
        params = {"name": card.name, "arguments": arguments, **(more or {})}
        return await self.ask("tools/call", params, hear, card.mirrored(arguments))

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask one thing of the server; the answer is an object."""
        wire = await self._connected()
        seconds = self.config.call_seconds
        try:
            answer = await wire.request(method, params, seconds, hear, headers)
        except SessionExpired:
            # The one refusal that says for certain that nothing was done.
            self.next_try = 0.0
            wire = await self._connected()
            answer = await wire.request(method, params, seconds, hear, headers)
        if not isinstance(answer.value, dict):
            raise ServerProblem(f"{self.config.id} answered with no result")
        return answer

    async def listed(self, what: str) -> Listed:
        """List ``resources``, ``resources/templates`` or ``prompts``; nothing if it has none."""
        wire = await self._connected()
        offers = self.greeted.offers if self.greeted else frozenset()
        if what.partition("/")[0] not in offers:
            return Listed()
        return await list_all(wire, what, self._around.patience.listing)

    async def close(self) -> None:
        """End it."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()
            self._tell()

    async def _connected(self) -> Wire:
        if self._wire is not None and self._wire.open:
            return self._wire
        async with self._connecting:
            if self._wire is not None and self._wire.open:
                return self._wire
            self._refuse_until_next_try()
            await self.close()
            try:
                self._wire = await self._greeted()
            except EverContextError as problem:
                self._failed(str(problem))
                raise
            self._forget_list()
            self.problem = None
            self._since = time.monotonic()
            self.next_try = self._since + self._pause()
            self._tell()
            return self._wire

    def _refuse_until_next_try(self) -> None:
        left = self.next_try - time.monotonic()
        if left > 0:
            why = self.problem or "it ended"
            raise ServerGone(f"server {self.config.id} is down ({why}); next try in {left:.0f} s")
        if self._wire is not None:
            # A connection that lasted is forgiven; one that dies at once is not.
            lasted = time.monotonic() - self._since > _LASTING
            self._failures = 0 if lasted else self._failures + 1

    def _pause(self) -> float:
        return min(_LONGEST_PAUSE, 0.5 * 2.0**self._failures)

    def _failed(self, problem: str) -> None:
        self._failures += 1
        self.problem = escaped(self._secrets.masked(problem))[:_LONGEST_PROBLEM]
        self.next_try = time.monotonic() + self._pause()
        self._tell()

    def _tell(self) -> None:
        """Leave word for other processes, such as the command that lists servers."""
        if self._around.logs is None:
            return
        wait = self.retry_in
        state = ServerState(
            self.config.id,
            self.state,
            self.problem,
            None if wait is None else time.time() + wait,
            len(self._cards or ()),
            self.greeted.version if self.greeted else "",
            os.getpid(),
        )
        leave_state(self._around.logs, state)

    async def _greeted(self) -> Wire:
        try:
            return await self._greet_over(await self._open())
        except HttpRefused as refusal:
            # Servers from before Streamable HTTP refuse the POST and have a stream instead.
            if refusal.status not in _NO_STREAMABLE or self._old_transport:
                raise
            self._old_transport = True
            try:
                return await self._greet_over(await self._open())
            except ServerProblem:
                self._old_transport = False
                raise refusal from None

    async def _greet_over(self, wire: Wire) -> Wire:
        try:
            self.greeted = await greet(self.config.id, wire, self._around.patience.greeting)
            await wire.listen()
        except BaseException:
            await wire.close()
            raise
        return wire

    async def _open(self) -> Wire:
        config = self.config
        headers = {name: self._filled(value) for name, value in config.headers.items()}
        given = {name: self._filled(value) for name, value in config.env.items()}
        secrets = config.secrets(headers, given)
        self._secrets.learn(secrets)
        self._around.on_secrets(secrets)
        if config.url:
            proxy = proxy_for(config.url, self._around.environment)
            reached = (config.id, config.url, headers, self._forget_list, proxy)
            return await SseWire.start(*reached) if self._old_transport else HttpWire(*reached)
        return await StdioWire.start(
            config.id,
            [self._filled(part) for part in config.argv],
            cwd=Path(config.cwd) if config.cwd else self._around.root,
            env={**filtered(self._around.environment), **given},
            log=self.log.extend,
            on_changed=self._forget_list,
        )

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: self._around.environment.get(found[1], ""), text)

    def _forget_list(self) -> None:
        self._cards = None
        self.generation += 1

    async def _list(self, wire: Wire) -> dict[str, Card]:
        try:
            listed = await list_all(wire, "tools", self._around.patience.listing)
        except ServerTimeout as late:
            await self.close()
            self._failed(str(late))
            raise ServerTimeout(f"{self.config.id}: {late}") from None
        cards, warnings = adopt(self.config.id, listed.items)
        if listed.endless:
            warnings.insert(0, "the list of tools does not end: the rest was left out")
        doubts = (f"{card.name} says: {', '.join(found)}" for card in cards
                  if (found := card.doubts))  # fmt: skip
        self.warnings = [*warnings[:_MOST_WARNINGS], *map(escaped, doubts)]
        await self._pin(cards)
        self._fresh_until = time.monotonic() + (listed.seconds or UNHEARD_SECONDS)
        self.checks = {card.name: ArgumentCheck(card.schema) for card in cards}
        self.tools = {}
        self._cards = {card.name: card for card in cards}
        self._tell()
        return self._cards

    async def _pin(self, cards: list[Card]) -> None:
        pins = await self._table.pins(self.config.id)
        digests = {card.name: digest_of(card) for card in cards}
        new = {name: digest for name, digest in digests.items() if name not in pins}
        self.held = {
            name: digest
            for name, digest in digests.items()
            if name in pins and pins[name][0] != digest
        }
        if new:
            await self._table.pin(self.config.id, new)
        if self.held:
            await self._table.hold(self.config.id, self.held)
            self._around.on_held(self.config.id, sorted(self.held))

    async def _look_for_approval(self) -> None:
        """Somebody may have approved what was held, in another process."""
        if not self.held:
            return
        pins = await self._table.pins(self.config.id)
        trusted = {name: digest for name, (digest, _) in pins.items()}
        self.held = {n: digest for n, digest in self.held.items() if trusted.get(n) != digest}
