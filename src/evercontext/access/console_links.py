"""Record the open web console, and the single-use links that sign a person in."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import time

from evercontext.process.process_identity import is_alive, owner_of
from evercontext.storage.key_value import delete_value, get_value, put_value, values_below
from evercontext.storage.store import Store

LINK_SECONDS = 600.0
_OPEN = "console:"
_TICKET = "console-ticket:"


class Consoles:
    """Which console runs for this home, and who may come in. Whoever reads the home may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def announce(self, url: str, project: str, user: str | None = None) -> None:
        """Say that this process shows a user's console of a project at ``url``."""
        console = {"url": url, "project": project, "user": user, "owner": owner_of(os.getpid())}
        await put_value(self._store, _own_key(), json.dumps(console))

    async def retire(self) -> None:
        """Say that it does not any more."""
        await delete_value(self._store, _own_key())

    async def url(self, project: str, user: str | None = None) -> str | None:
        """The address of the console that runs for this user in a project, or ``None``.

        Of several, this process's own comes first.
        """
        rows = await values_below(self._store, _OPEN)
        for row in sorted(rows, key=lambda row: str(row["key"]) != _own_key()):
            console = json.loads(row["value"])
            matches = (console.get("project"), console.get("user")) == (project, user)
            if matches and is_alive(console.get("owner")):
                return str(console["url"])
        return None

    async def new_ticket(self, url: str) -> str:
        """Make the secret of a link; it is good once, for ten minutes, at the console of ``url``.

        A database may be shared: another console that reads it must not take the link.
        """
        ticket = secrets.token_urlsafe(32)
        value = json.dumps({"until": time.time() + LINK_SECONDS, "console": url})
        await put_value(self._store, _key(ticket), value)
        return ticket

    async def redeem(self, ticket: str, url: str) -> bool:
        """Use a ticket up; ``False`` if it is none, another console's, too old, or was used."""
        key = _key(ticket)
        value = await get_value(self._store, key)
        if value is None or _console(value) != url:
            return False
        # Of two that come at once only one deletes the row.
        return await delete_value(self._store, key) and _until(value) > time.time()

    async def sweep(self) -> None:
        """Remove links that nobody used in time, and consoles that died."""
        dead = [
            row["key"]
            for row in await values_below(self._store, _TICKET)
            if _until(row["value"]) <= time.time()
        ]
        for row in await values_below(self._store, _OPEN):
            if not is_alive(json.loads(row["value"]).get("owner"), elsewhere=True):
                dead.append(row["key"])
        for key in dead:
            await delete_value(self._store, key)


def _own_key() -> str:
    # A database may be shared by machines whose processes have the same numbers.
    return f"{_OPEN}{socket.gethostname()}:{os.getpid()}"


def _console(text: str) -> str | None:
    value = json.loads(text)
    return str(value["console"]) if isinstance(value, dict) else None


def _until(text: str) -> float:
    value = json.loads(text)
    # A number alone is a link of an older version.
    return float(value["until"]) if isinstance(value, dict) else 0.0


def _key(ticket: str) -> str:
    return _TICKET + hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).hexdigest()
