"""Create and check the tokens of the tool router, each with a name and a scope.

The secret is shown once, when it is made; the store holds its digest.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from evercontext.domain.principal import user_name
from evercontext.errors import ConfigError, NotFound
from evercontext.storage.login import digest_of
from evercontext.storage.store import Row, Store
from evercontext.storage.version_cache import VersionCache

PREFIX = "ec_"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What a token is for; ``None`` means any."""

    name: str
    projects: frozenset[str] | None = None
    servers: frozenset[str] | None = None
    created_at: str = ""
    revoked_at: str | None = None
    user: str | None = None
    """Whose memories its bearer sees and keeps; ``None``: those of the project alone."""


class Tokens:
    """The ``tokens`` table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open = VersionCache(store, self._read_open)

    async def create(
        self,
        name: str,
        *,
        projects: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        user: str | None = None,
    ) -> str:
        """Make a token and return its secret, which nobody can read again."""
        _check(name)
        user = _user(user) if user is not None else None
        secret = PREFIX + secrets.token_urlsafe(32)
        changed = await self._store.execute(
            "INSERT INTO tokens (name, digest, projects, servers, created_at, user_id)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
            (name, digest_of(secret), _list(projects), _list(servers), _now(), user),
        )
        if not changed:
            fix = "Choose another name, or revoke it"
            raise ConfigError(f"there is a token {name!r} already", fix=fix)
        return secret

    async def all(self) -> list[AccessToken]:
        """Every token ever made, by name."""
        rows = await self._store.fetch_all("SELECT * FROM tokens ORDER BY name")
        return [_token(row) for row in rows]

    async def check(self, secret: str) -> AccessToken | None:
        """The token behind a secret, unless it was revoked, by whatever process."""
        return (await self._open.get()).get(digest_of(secret))

    async def revoked_name(self, secret: str) -> str | None:
        """Return the name of the token behind a secret if it was revoked."""
        row = await self._store.fetch_one(
            "SELECT name FROM tokens WHERE digest = ? AND revoked_at IS NOT NULL",
            (digest_of(secret),),
        )
        return None if row is None else str(row["name"])

    async def _read_open(self) -> dict[str, AccessToken]:
        rows = await self._store.fetch_all("SELECT * FROM tokens WHERE revoked_at IS NULL")
        return {row["digest"]: _token(row) for row in rows}

    async def revoke(self, name: str) -> None:
        """End a token; its next call is refused."""
        changed = await self._store.execute(
            "UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL",
            (_now(), name),
        )
        if not changed:
            fix = "See: evercontext tokens list"
            raise NotFound(f"there is no open token {name[:80]!r}", fix=fix)


def _check(name: str) -> None:
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise ConfigError("a token's name is 1 to 64 printable characters")


def _user(name: str) -> str:
    try:
        return user_name(name)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _list(names: Sequence[str] | None) -> str | None:
    return None if names is None else json.dumps(list(names))


def _token(row: Row) -> AccessToken:
    return AccessToken(
        row["name"],
        _set(row["projects"]),
        _set(row["servers"]),
        row["created_at"],
        row["revoked_at"],
        row["user_id"],
    )


def _set(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(json.loads(text))
