"""Cancel requests whose client has disconnected, or whose server ends."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine
from typing import Any, ClassVar

from evercontext.domain.tool import ToolResult
from evercontext.errors import Cancelled, Terminated

DISCONNECT = "evercontext.disconnect"
"""Where the scope of an ASGI request holds its ``Disconnect``."""


class Disconnect:
    """Cancels the work for one request when its client disconnects."""

    __slots__ = ("__weakref__", "_reason", "_working")
    _all: ClassVar[weakref.WeakSet[Disconnect]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._reason: Cancelled | None = None
        self._working: asyncio.Task[Any] | None = None

    @classmethod
    def end_all(cls) -> None:
        """Cancel all work that only reads, because the server ends."""
        for request in list(cls._all):
            request._cancel(Terminated("the server is ending"))

    @property
    def is_working(self) -> bool:
        """True while there is work for the client."""
        return self._working is not None

    def disconnected(self) -> None:
        """Cancel the work, because the client has disconnected."""
        self._cancel(Cancelled("the client went away"))

    def _cancel(self, reason: Cancelled) -> None:
        self._reason = reason
        if self._working is not None:
            self._working.cancel()

    async def unless_disconnected(self, work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
        """Return the result of ``work``, or a failed result once it is cancelled."""
        if self._reason is not None:
            # The client disconnected while its request waited to be read.
            work.close()
            return ToolResult.failed(self._reason)
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
