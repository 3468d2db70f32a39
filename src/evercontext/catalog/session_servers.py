"""Servers of one session, as an editor names them: beside those of the store, and never stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.storage.store import Store

_NONE: Mapping[str, str] = {}


class SessionServerTable(ServerTable):
    """The servers of the store and some more; one of the session hides a stored one of its name."""

    def __init__(self, store: Store, session: Sequence[ServerConfig]) -> None:
        super().__init__(store)
        self._session = {config.id: config for config in session}
        self._pins: dict[str, dict[str, tuple[str, str | None]]] = {id: {} for id in self._session}
        self._definitions: dict[str, dict[str, str]] = {id: {} for id in self._session}

    async def get(self, id: str) -> ServerConfig:
        """Return one server, or raise ``NotFound``."""
        return self._session.get(id) or await super().get(id)

    async def pins(self, server: str) -> dict[str, tuple[str, str | None]]:
        """Return the trusted and held digests; those of the session's servers end with it."""
        return dict(self._pins[server]) if server in self._pins else await super().pins(server)

    async def definitions(self, server: str) -> dict[str, str]:
        """Return the trusted definitions; those of the session's servers end with it."""
        known = self._definitions.get(server)
        return dict(known) if known is not None else await super().definitions(server)

    async def pin(
        self, server: str, trusted: Mapping[str, str], definitions: Mapping[str, str] = _NONE
    ) -> None:
        """Trust these digests; a tool that already has one keeps it."""
        if server not in self._pins:
            return await super().pin(server, trusted, definitions)
        for tool, digest in trusted.items():
            self._pins[server].setdefault(tool, (digest, None))
            if tool in definitions:
                self._definitions[server].setdefault(tool, definitions[tool])

    async def add_definitions(
        self, server: str, trusted: Mapping[str, str], definitions: Mapping[str, str]
    ) -> None:
        """Keep the definitions of tools that were trusted before; nothing of them is stored."""
        if server not in self._pins:
            return await super().add_definitions(server, trusted, definitions)
        self._definitions[server] |= {tool: definitions[tool] for tool in trusted}

    async def hold(self, server: str, changed: Mapping[str, str]) -> None:
        """Remember which definitions are not the trusted ones any more."""
        if server not in self._pins:
            return await super().hold(server, changed)
        for tool, digest in changed.items():
            self._pins[server][tool] = (self._pins[server][tool][0], digest)

    async def _read_all(self) -> tuple[list[ServerConfig], ServerConfig]:
        stored, own = await super()._read_all()
        others = [config for config in stored if config.id not in self._session]
        return sorted([*others, *self._session.values()], key=lambda config: config.id), own
