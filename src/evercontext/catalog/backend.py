"""One outside server: started when first needed, kept, restarted with patience, ended with us."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext import __version__
from evercontext.catalog.adopt import MOST_TOOLS, adopt, digest_of
from evercontext.catalog.card import Card
from evercontext.catalog.http import HttpWire
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.stdio import StdioWire, new_log
from evercontext.catalog.wire import Wire
from evercontext.errors import EverContextError, ServerGone, ServerProblem, ServerTimeout
from evercontext.process.environment import filtered

REVISION = "2025-06-18"
_LONGEST_PAUSE = 60.0
_LASTING = 10.0
_MOST_PAGES = 100
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds a server gets to greet and to list its tools; a call's are the server's own."""

    greeting: float = 10.0
    listing: float = 10.0


class Backend:
    """A server and what is known of it. Calls are never repeated: they may have had effects."""

    def __init__(
        self,
        config: ServerConfig,
        table: ServerTable,
        environment: Mapping[str, str],
        root: Path,
        on_held: Callable[[str, list[str]], None] = lambda server, tools: None,
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self.config = config
        self.log = new_log()
        self.warnings: list[str] = []
        self.held: dict[str, str] = {}
        """Tools whose definition is not the trusted one, with the new digest."""
        self.problem: str | None = None
        self.next_try = 0.0
        self._table, self._environment, self._root = table, environment, root
        self._on_held, self._patience = on_held, patience
        self._wire: Wire | None = None
        self._cards: tuple[Card, ...] | None = None
        self._failures = 0
        self._since = 0.0
        self._connecting, self._listing = asyncio.Lock(), asyncio.Lock()

    @property
    def state(self) -> str:
        """``running``, ``failed`` or ``stopped``."""
        if self._wire is not None and self._wire.open:
            return "running"
        return "failed" if self.problem else "stopped"

    @property
    def wire(self) -> Wire | None:
        """The connection, if there is one."""
        return self._wire

    async def cards(self) -> tuple[Card, ...]:
        """The tools that may be used; asked of the server once, and again when it says so."""
        wire = await self._connected()
        async with self._listing:
            if self._cards is None:
                self._cards = await self._list(wire)
        await self._look_for_approval()
        return tuple(card for card in self._cards or () if card.name not in self.held)

    def held_cards(self) -> list[Card]:
        """The definitions that wait for approval, as the server gives them now."""
        return [card for card in self._cards or () if card.name in self.held]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return the server's answer as it is."""
        wire = await self._connected()
        params = {"name": tool, "arguments": arguments}
        answer = await wire.request("tools/call", params, self.config.call_seconds)
        if not isinstance(answer, dict):
            raise ServerProblem(f"{self.config.id} answered with no result")
        return answer

    async def close(self) -> None:
        """End it."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

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
            self._cards = None
            self.problem = None
            self._since = time.monotonic()
            self.next_try = self._since + self._pause()
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
        self.problem = problem
        self.next_try = time.monotonic() + self._pause()

    async def _greeted(self) -> Wire:
        wire = await self._open()
        try:
            hello = {
                "protocolVersion": REVISION,
                "capabilities": {},
                "clientInfo": {"name": "evercontext", "version": __version__},
            }
            answer = await wire.request("initialize", hello, self._patience.greeting)
            version = answer.get("protocolVersion") if isinstance(answer, dict) else None
            if not isinstance(version, str):
                raise ServerProblem(f"{self.config.id} did not say which protocol it speaks")
            if isinstance(wire, HttpWire):
                wire.speak(version[:32])
            await wire.notify("notifications/initialized", {})
        except BaseException:
            await wire.close()
            raise
        return wire

    async def _open(self) -> Wire:
        config = self.config
        if config.url:
            headers = {name: self._filled(value) for name, value in config.headers.items()}
            return HttpWire(config.id, config.url, headers, self._forget_list)
        given = {name: self._filled(value) for name, value in config.env.items()}
        return await StdioWire.start(
            config.id,
            [self._filled(part) for part in config.argv],
            cwd=Path(config.cwd) if config.cwd else self._root,
            env={**filtered(self._environment), **given},
            log=self.log,
            on_changed=self._forget_list,
        )

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: self._environment.get(found[1], ""), text)

    def _forget_list(self) -> None:
        self._cards = None

    async def _list(self, wire: Wire) -> tuple[Card, ...]:
        try:
            async with asyncio.timeout(self._patience.listing):
                listed = await self._pages(wire)
        except TimeoutError:
            await self._give_up("it did not list its tools in time")
            raise ServerTimeout(f"{self.config.id} did not list its tools in time") from None
        except ServerTimeout as late:
            await self._give_up(str(late))
            raise
        cards, warnings = adopt(self.config.id, listed)
        self.warnings = [*self.warnings, *warnings]
        await self._pin(cards)
        return tuple(cards)

    async def _give_up(self, problem: str) -> None:
        await self.close()
        self._failed(problem)

    async def _pages(self, wire: Wire) -> list[Any]:
        listed: list[Any] = []
        seen: set[str] = set()
        self.warnings = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = {"cursor": cursor} if cursor else {}
            page = await wire.request("tools/list", params, self._patience.listing)
            tools = page.get("tools") if isinstance(page, dict) else None
            listed += tools if isinstance(tools, list) else []
            cursor = page.get("nextCursor") if isinstance(page, dict) else None
            if not isinstance(cursor, str) or not cursor or len(listed) > MOST_TOOLS:
                return listed
            if cursor in seen:
                break
            seen.add(cursor)
        self.warnings.append("the list of tools does not end: the rest was left out")
        return listed

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
            self._on_held(self.config.id, sorted(self.held))

    async def _look_for_approval(self) -> None:
        """Somebody may have approved what was held, in another process."""
        if not self.held:
            return
        pins = await self._table.pins(self.config.id)
        trusted = {name: digest for name, (digest, _) in pins.items()}
        self.held = {n: digest for n, digest in self.held.items() if trusted.get(n) != digest}
