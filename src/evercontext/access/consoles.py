"""The web console that is open, and the links that let a person into it, each used once."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time

from evercontext.process.owner import is_alive, owner_of
from evercontext.storage.store import Row, Store

LINK_SECONDS = 600.0
_OPEN = "console:"
_TICKET = "console-ticket:"
_KEEP = (
    "INSERT INTO kept (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class Consoles:
    """Which console runs for this home, and who may come in. Whoever reads the home may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def announce(self, url: str, project: str, user: str | None = None) -> None:
        """Say that this process shows a user's console of a project at ``url``."""
        told = {"url": url, "project": project, "user": user, "owner": owner_of(os.getpid())}
        await self._store.execute(_KEEP, (f"{_OPEN}{os.getpid()}", json.dumps(told)))

    async def retire(self) -> None:
        """Say that it does not any more."""
        await self._store.execute("DELETE FROM kept WHERE key = ?", (f"{_OPEN}{os.getpid()}",))

    async def url(self, project: str, user: str | None = None) -> str | None:
        """The address of the console that runs for this user in a project, or ``None``."""
        for row in await self._rows(_OPEN):
            found = json.loads(row["value"])
            wanted = (found.get("project"), found.get("user")) == (project, user)
            if wanted and is_alive(found.get("owner")):
                return str(found["url"])
        return None

    async def new_ticket(self) -> str:
        """Make the secret of a link; it is good once, and for ten minutes."""
        ticket = secrets.token_urlsafe(32)
        await self._store.execute(_KEEP, (_key(ticket), str(time.time() + LINK_SECONDS)))
        return ticket

    async def redeem(self, ticket: str) -> bool:
        """Use a ticket up; ``False`` if it is none, too old, or was used."""
        key = _key(ticket)
        row = await self._store.fetch_one("SELECT value FROM kept WHERE key = ?", (key,))
        # Of two that come at once only one deletes the row.
        used = await self._store.execute("DELETE FROM kept WHERE key = ?", (key,))
        return row is not None and used > 0 and float(row["value"]) > time.time()

    async def sweep(self) -> None:
        """Remove links that nobody used in time, and consoles that died."""
        dead = [
            row["key"] for row in await self._rows(_TICKET) if float(row["value"]) <= time.time()
        ]
        for row in await self._rows(_OPEN):
            if not is_alive(json.loads(row["value"]).get("owner"), elsewhere=True):
                dead.append(row["key"])
        for key in dead:
            await self._store.execute("DELETE FROM kept WHERE key = ?", (key,))

    async def _rows(self, beginning: str) -> list[Row]:
        return await self._store.fetch_all(
            "SELECT key, value FROM kept WHERE substr(key, 1, ?) = ? ORDER BY key DESC",
            (len(beginning), beginning),
        )


def _key(ticket: str) -> str:
    return _TICKET + hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).hexdigest()
