"""Define which servers and tools of the catalog a caller may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

OURS = "evercontext"
"""The server that our own tools are."""
Hear = Callable[[dict[str, Any]], None]
"""Told the progress of a call, as the server reports it."""


class ClientChannel(Protocol):
    """The client behind a call, for a server that has something to say to it meanwhile."""

    @property
    def key(self) -> str:
        """Which client it is: two calls of one client have the same key."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send it a notification."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send it a request; return ``{"result": …}`` or ``{"error": …}``, as it answers."""
        ...


class Server(Protocol):
    """A server of the catalog, as far as it matters here."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def project(self) -> str:
        """Whose it is; empty: everybody's."""
        ...

    @property
    def enabled(self) -> bool:
        """False if it was switched off."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What a caller may see: everybody's servers, those of its project, fewer by its token."""

    project: str | None = None
    servers: frozenset[str] | None = None
    """The only servers its token is for, ours among them; ``None``: any."""
    own_root: bool = True
    """Whether the directory that our own tools work in is this caller's, too."""

    def sees(self, server: Server) -> bool:
        """Tell whether this caller may use a server: our own tools are one like any other."""
        return (
            server.enabled
            and server.project in ("", self.project)
            and (self.servers is None or server.id in self.servers)
            and (self.own_root or server.id != OURS)
        )


NO_ACCESS = Scope(servers=frozenset(), own_root=False)
"""The scope of a caller that may use nothing."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What goes along with one call and is no argument of it."""

    hear: Hear | None = None
    """Told of its progress."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What the stateless revision wants beside the arguments."""
    client: ClientChannel | None = None
    """Who takes log messages and questions of the server meanwhile; ``None``: nobody."""


NOTHING = Aside()
"""What most calls bring along."""
