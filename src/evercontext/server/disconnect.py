"""A request that nobody will get the answer of: its client is gone, or the server ends."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable
from typing import Any, ClassVar

from evercontext.domain.tool import ToolResult
from evercontext.errors import Cancelled, Terminated

LEAVING = "evercontext.leaving"


class Leaving:
    """Whether the client of one request is gone; who works for it is cancelled then."""

    __slots__ = ("__weakref__", "_reason", "_working")
    _all: ClassVar[weakref.WeakSet[Leaving]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._reason: Cancelled | None = None
        self._working: asyncio.Task[Any] | None = None

    @classmethod
    def end_all(cls) -> None:
        """The server ends: what only reads is given up and says so."""
        for request in list(cls._all):
            request._give_up(Terminated("the server is ending"))

    @property
    def waits(self) -> bool:
        """True while somebody works for the client."""
        return self._working is not None

    def leave(self) -> None:
        """The client is gone."""
        self._give_up(Cancelled("the client went away"))

    def _give_up(self, reason: Cancelled) -> None:
        self._reason = reason
        if self._working is not None:
            self._working.cancel()

    async def unless_gone(self, work: Awaitable[ToolResult]) -> ToolResult:
        """Return what ``work`` does; once nobody waits for it, it is cancelled and this says so."""
        task = asyncio.current_task()
        assert task is not None
        self._working = task
        self._all.add(self)
        try:
            return await work
        except asyncio.CancelledError:
            if self._reason is None:
                raise
            task.uncancel()
            return ToolResult.failed(self._reason)
        finally:
            self._working = None
            self._all.discard(self)
