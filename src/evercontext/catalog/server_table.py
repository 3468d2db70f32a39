"""Store the servers a user added: how to reach each, and access to its tools."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from evercontext.domain.caller_scope import OURS
from evercontext.errors import ConfigError, NotFound
from evercontext.events.redaction import secret_values
from evercontext.storage.store import Row, Store
from evercontext.storage.version_cache import VersionCache

CALL_SECONDS = 60.0
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "user-agent", "content-type"})
_NONE: Mapping[str, str] = {}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One outside server."""

    id: str
    argv: tuple[str, ...] = ()
    """What to start; empty for a server behind an address."""
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Handed to the child on purpose; ``${NAME}`` is filled in from our environment."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    project: str = ""
    enabled: bool = True
    tool_permissions: Mapping[str, bool] = field(default_factory=dict)
    call_seconds: float = CALL_SECONDS
    sse: bool = False
    """Behind the transport from before Streamable HTTP."""

    def allows(self, tool: str) -> bool:
        """True unless the tool was switched off."""
        return self.tool_permissions.get(tool, True)

    @property
    def transport(self) -> str:
        """``stdio``, ``http``, ``sse``, or ``own`` for our own tools."""
        if self.id == OURS:
            return "own"
        return "stdio" if self.argv else "sse" if self.sse else "http"

    @property
    def reached_by(self) -> str:
        """The command line or the address, for people."""
        return "(our own tools)" if self.id == OURS else self.url or shlex.join(self.argv)

    def secrets(self, headers: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
        """What no log may show of the credentials it is given, filled in as they are."""
        sent = [value for name, value in headers.items() if name.lower() not in _PLAIN_HEADERS]
        # The scheme before a credential is no secret, and the credential is one without it too.
        known = [*sent, *(value.rpartition(" ")[2] for value in sent), *secret_values(env)]
        # Servers echo what they are given inside JSON, where it may be spelled in escapes.
        return [*known, *(json.dumps(value)[1:-1] for value in known)]


def read_config(name: str, value: Any, *, project: str = "") -> ServerConfig:
    """Read one entry of ``mcpServers``, as the clients in use write them."""
    if not _ID.fullmatch(name) or name == OURS:
        fix = "Use 1 to 64 letters, digits, _ . -; evercontext is ours"
        raise ConfigError(f"{name[:80]!r} cannot be a server's name", fix=fix)
    entry = value if isinstance(value, Mapping) else {}
    command = entry.get("command")
    url = entry.get("url") or entry.get("httpUrl") or entry.get("serverUrl") or ""
    if not command and not url:
        fix = "Give a command, or the url of a Streamable HTTP server"
        raise ConfigError(f"server {name}: neither a command nor an http address", fix=fix)
    arguments = entry.get("args") or []
    if not isinstance(arguments, list) or (command is not None and not isinstance(command, str)):
        raise ConfigError(f"server {name}: command must be a text and args a list")
    return ServerConfig(
        name,
        argv=(command, *map(str, arguments)) if command else (),
        url="" if command else _address(name, url),
        env=_texts(entry.get("env")),
        headers=_texts(entry.get("headers") or entry.get("http_headers")),
        cwd=str(entry.get("cwd") or ""),
        project=project,
        enabled=not entry.get("disabled", False),
        sse=not command and entry.get("type", entry.get("transport")) == "sse",
    )


def _address(name: str, url: Any) -> str:
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"server {name}: {url!r} is no http address")
    return str(url)


def _texts(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


def suggest_names(name: str, there: Collection[str]) -> str:
    """Say which names are near; nothing where none is."""
    near = difflib.get_close_matches(name.lower(), {candidate.lower() for candidate in there}, n=3)
    matches = [candidate for candidate in there if candidate.lower() in near]
    return f"Did you mean {' or '.join(matches)}?" if matches else ""


class ServerTable:
    """The ``servers`` table and the pins of their tools."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._all = VersionCache(store, self._read_all)

    async def all(self) -> list[ServerConfig]:
        """Every outside server, by name, as of the last commit of any process."""
        return (await self._all.get())[0]

    async def own(self) -> ServerConfig:
        """Our own tools, which are a server like the others: on, unless they were switched off."""
        return (await self._all.get())[1]

    async def _read_all(self) -> tuple[list[ServerConfig], ServerConfig]:
        rows = await self._store.fetch_all("SELECT * FROM servers ORDER BY id")
        configs = [_config(row) for row in rows]
        own = next((config for config in configs if config.id == OURS), ServerConfig(OURS))
        return [config for config in configs if config.id != OURS], own

    async def get(self, id: str) -> ServerConfig:
        """One server, or ``NotFound``."""
        if id == OURS:
            return await self.own()
        row = await self._store.fetch_one("SELECT * FROM servers WHERE id = ?", (id,))
        if row is None:
            there = [config.id for config in await self.all()]
            fix = suggest_names(id, there) or "See: evercontext servers list"
            raise NotFound(f"there is no server {id[:80]!r}", fix=fix)
        return _config(row)

    async def put(self, config: ServerConfig) -> None:
        """Add a server or replace it."""
        await self._store.execute(
            "INSERT INTO servers (id, transport, argv, url, env, headers, cwd, project, enabled,"
            " tool_permissions, call_seconds, sse)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET transport = excluded.transport,"
            " argv = excluded.argv, url = excluded.url, env = excluded.env,"
            " headers = excluded.headers, cwd = excluded.cwd, project = excluded.project,"
            " enabled = excluded.enabled, tool_permissions = excluded.tool_permissions,"
            " call_seconds = excluded.call_seconds, sse = excluded.sse",
            _row(config),
        )

    async def remove(self, id: str) -> None:
        """Forget a server and what was pinned of it."""
        if id == OURS:
            fix = f"Switch them off with: evercontext servers disable {OURS}"
            raise ConfigError("our own tools cannot be removed", fix=fix)
        await self.get(id)
        await self._store.execute("DELETE FROM servers WHERE id = ?", (id,))
        await self._store.execute("DELETE FROM tool_pins WHERE server = ?", (id,))

    async def pins(self, server: str) -> dict[str, tuple[str, str | None]]:
        """For each tool ever seen, the trusted digest and the one that is held back."""
        rows = await self._store.fetch_all(
            "SELECT tool, digest, held FROM tool_pins WHERE server = ?", (server,)
        )
        return {row["tool"]: (row["digest"], row["held"]) for row in rows}

    async def definitions(self, server: str) -> dict[str, str]:
        """Return the trusted definitions of a server's tools, as JSON, where they are known."""
        rows = await self._store.fetch_all(
            "SELECT tool, definition FROM tool_pins WHERE server = ? AND definition IS NOT NULL",
            (server,),
        )
        return {row["tool"]: row["definition"] for row in rows}

    async def pin(
        self, server: str, trusted: Mapping[str, str], definitions: Mapping[str, str] = _NONE
    ) -> None:
        """Trust these digests; a tool that already has one keeps it."""
        await self._store.execute_many(
            "INSERT INTO tool_pins (server, tool, digest, definition) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (server, tool) DO NOTHING",
            [(server, tool, digest, definitions.get(tool)) for tool, digest in trusted.items()],
        )

    async def add_definitions(
        self, server: str, trusted: Mapping[str, str], definitions: Mapping[str, str]
    ) -> None:
        """Store the definitions of tools that were trusted before definitions were stored."""
        await self._store.execute_many(
            "UPDATE tool_pins SET digest = ?, definition = ?"
            " WHERE server = ? AND tool = ? AND definition IS NULL",
            [(digest, definitions[tool], server, tool) for tool, digest in trusted.items()],
        )

    async def hold(self, server: str, changed: Mapping[str, str]) -> None:
        """Remember which definitions are not the trusted ones any more."""
        await self._store.execute_many(
            "UPDATE tool_pins SET held = ? WHERE server = ? AND tool = ?",
            [(digest, server, tool) for tool, digest in changed.items()],
        )

    async def approve(
        self, server: str, shown: Mapping[str, str], definitions: Mapping[str, str] = _NONE
    ) -> None:
        """Trust these digests of tools from now on, and no other that came meanwhile."""
        await self._store.execute_many(
            "UPDATE tool_pins SET digest = ?, held = NULL, definition = ?"
            " WHERE server = ? AND tool = ?",
            [(digest, definitions.get(tool), server, tool) for tool, digest in shown.items()],
        )


def _row(config: ServerConfig) -> tuple[Any, ...]:
    return (
        config.id,
        "stdio" if config.argv else "http",
        json.dumps(config.argv),
        config.url,
        json.dumps(dict(config.env)),
        json.dumps(dict(config.headers)),
        config.cwd,
        config.project,
        int(config.enabled),
        json.dumps(dict(config.tool_permissions)),
        config.call_seconds,
        int(config.sse),
    )


def _config(row: Row) -> ServerConfig:
    return ServerConfig(
        row["id"],
        tuple(json.loads(row["argv"])),
        row["url"],
        json.loads(row["env"]),
        json.loads(row["headers"]),
        row["cwd"],
        row["project"],
        bool(row["enabled"]),
        json.loads(row["tool_permissions"]),
        float(row["call_seconds"]),
        bool(row["sse"]),
    )
