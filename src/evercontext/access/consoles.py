"""The web console that is open, and the links that let a person into it, each used once."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time

from evercontext.process.owner import is_alive, owner_of
from evercontext.storage.store import Store

LINK_SECONDS = 600.0
_OPEN = "console"
_TICKET = "console-ticket:"
_KEEP = (
    "INSERT INTO kept (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)


class Consoles:
    """Which console runs for this home, and who may come in. Whoever reads the home may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def announce(self, url: str) -> None:
        """Say that this process shows the console at ``url``."""
        value = json.dumps({"url": url, "owner": owner_of(os.getpid())})
        await self._store.execute(_KEEP, (_OPEN, value))

    async def retire(self) -> None:
        """Say that it does not any more, unless another has taken over."""
        row = await self._store.fetch_one("SELECT value FROM kept WHERE key = ?", (_OPEN,))
        if row and json.loads(row["value"])["owner"] == owner_of(os.getpid()):
            await self._store.execute("DELETE FROM kept WHERE key = ?", (_OPEN,))

    async def url(self) -> str | None:
        """The address of the console that runs, or ``None``."""
        row = await self._store.fetch_one("SELECT value FROM kept WHERE key = ?", (_OPEN,))
        found = json.loads(row["value"]) if row else {}
        return str(found["url"]) if is_alive(found.get("owner")) else None

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
        """Remove links that nobody used in time."""
        rows = await self._store.fetch_all(
            "SELECT key, value FROM kept WHERE substr(key, 1, ?) = ?", (len(_TICKET), _TICKET)
        )
        for row in rows:
            if float(row["value"]) <= time.time():
                await self._store.execute("DELETE FROM kept WHERE key = ?", (row["key"],))


def _key(ticket: str) -> str:
    return _TICKET + hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).hexdigest()
