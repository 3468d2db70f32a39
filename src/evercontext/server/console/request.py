"""Define a page's request as its handler gets it, and the routes to handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evercontext.app import EverContext
from evercontext.errors import InvalidArguments
from evercontext.server.console.event_feed import EventFeed

if TYPE_CHECKING:
    from evercontext.server.console.live_runs import LiveRuns

LONGEST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """What a page wants: the parts of its path, its query, its body."""

    app: EverContext
    feed: EventFeed
    work: LiveRuns
    """What this server runs for its pages."""
    trace_id: str
    """Of this request, for what it causes."""
    parts: tuple[str, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number of the query, from 0 to ``most``."""
        value = self.query.get(name, "")
        if not value:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 12:
            raise InvalidArguments(f"{name} must be a whole number")
        return min(int(value), most)

    def text(self, name: str, *, least: int = 1, most: int = LONGEST_TEXT) -> str:
        """A text of the body."""
        value = self.body.get(name)
        if not isinstance(value, str) or not least <= len(value) <= most:
            raise InvalidArguments(f"{name} must be a text of {least} to {most:,} characters")
        return value

    def switch(self, name: str) -> bool:
        """A yes or no of the body."""
        value = self.body.get(name)
        if not isinstance(value, bool):
            raise InvalidArguments(f"{name} must be true or false")
        return value


Handler = Callable[[ConsoleRequest], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ConsoleRoute:
    """A method, a path of words and ``*``, and who answers."""

    method: str
    path: str
    handler: Handler

    def match(self, method: str, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The parts that stand for ``*``, or ``None`` if this is another route."""
        words = tuple(self.path.split("/"))
        if len(words) != len(parts) or method != self.method:
            return None
        if any(word not in ("*", part) for word, part in zip(words, parts, strict=True)):
            return None
        return tuple(part for word, part in zip(words, parts, strict=True) if word == "*")
