"""Telling a client that a list it was given is not the one it would get now.

Two tools stay two tools, whatever happens behind them. Where every tool is listed, and for
resources and prompts, a server that comes, goes or changes makes another list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evercontext.domain.caller_scope import Scope as Sight
from evercontext.errors import EverContextError
from evercontext.server.router.offer import Offer

PAUSE = 1.0
"""Seconds between two looks; other processes add and remove servers too."""
_KINDS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
}


class ListChanges:
    """Remembers what the lists were made of, and tells once when that is over."""

    def __init__(
        self, offer: Offer, sight: Callable[[], Awaitable[Sight]], tell: Callable[[str], None]
    ) -> None:
        self._offer, self._sight, self._tell = offer, sight, tell
        self._given: dict[str, tuple[object, ...]] = {}

    async def note(self, method: str) -> None:
        """A list was given just now."""
        if kind := _KINDS.get(method):
            self._given[kind] = await self._offer.state(kind, await self._sight())

    async def watch(self) -> None:
        """Look again and again, as long as there is a client to tell."""
        while True:
            await asyncio.sleep(PAUSE)
            try:
                await self.look()
            except EverContextError:
                # A database that is away for a moment changes no list.
                continue

    async def look(self) -> None:
        """Tell of every list that is another one now; not again before it was asked for again."""
        if not self._given:
            return
        sight = await self._sight()
        for kind, given in list(self._given.items()):
            changed = await self._offer.state(kind, sight) != given
            # It may have been listed again meanwhile.
            if changed and self._given.get(kind) is given:
                del self._given[kind]
                self._tell(f"notifications/{kind}/list_changed")
