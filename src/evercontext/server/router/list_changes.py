"""Tell a client that a list it was given has changed.

Two tools stay two tools, whatever happens behind them. Where every tool is listed, and for
resources and prompts, a server that is added, removed or changed makes another list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from evercontext.domain.caller_scope import Scope
from evercontext.errors import EverContextError
from evercontext.server.router.mcp_methods import RouterOffer

CHECK_SECONDS = 1.0
"""Seconds between two checks; other processes add and remove servers too."""
_KINDS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
}


class ListChanges:
    """Remembers the versions of the lists a client was given, and announces a change once."""

    def __init__(
        self,
        offer: RouterOffer,
        scope: Callable[[], Awaitable[Scope]],
        announce: Callable[[str], None],
    ) -> None:
        self._offer, self._scope, self._announce = offer, scope, announce
        self._followed: frozenset[str] = frozenset()
        self._versions: dict[str, tuple[object, ...]] = {}
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Check at once: a server said that a list changed."""
        self._woken.set()

    async def follow(self, kinds: Iterable[str]) -> None:
        """Announce every change of these lists from now on, whether they were given or not."""
        self._followed = frozenset(kinds)
        for kind in self._followed:
            self._versions[kind] = await self._offer.list_version(kind, await self._scope())

    async def listed(self, method: str) -> None:
        """Remember the version of a list that was just given."""
        if kind := _KINDS.get(method):
            self._versions[kind] = await self._offer.list_version(kind, await self._scope())

    async def watch(self) -> None:
        """Check until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self.check()
            except EverContextError:
                # A database that is away for a moment changes no list.
                continue

    async def check(self) -> None:
        """Announce every list that changed; not again before the client listed it again."""
        if not self._versions:
            return
        scope = await self._scope()
        for kind, version in list(self._versions.items()):
            present = await self._offer.list_version(kind, scope)
            # The client may have listed it again meanwhile.
            if present != version and self._versions.get(kind) is version:
                del self._versions[kind]
                if kind in self._followed:
                    self._versions[kind] = present
                self._announce(f"notifications/{kind}/list_changed")
