"""Record the open web console, and the single-use links that sign a person in."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Sequence

from evercontext.process.process_identity import is_alive, owner_of
from evercontext.storage.key_value import delete_value, get_value, put_value, values_below
from evercontext.storage.store import Store

LINK_SECONDS = 600.0
_OPEN = "console:"
_TICKET = "console-ticket:"
_BROWSER = "console-browser:"
_NAME = "console-name:"
_HOST = re.compile(r"ec-[0-9a-f]{16}\.localhost")


def new_name() -> str:
    """Return a name of this machine that nobody can guess."""
    return f"ec-{secrets.token_hex(8)}.localhost"


class Consoles:
    """Which console runs for this home, and who may come in. Whoever reads the home may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def announce(
        self, url: str, project: str, user: str | None = None, also: Sequence[str] = ()
    ) -> None:
        """Say that this process shows a user's console of a project at ``url``.

        Questions of the projects in ``also`` can be answered there, too.
        """
        owner = owner_of(os.getpid())
        console = {"url": url, "project": project, "user": user, "owner": owner, "also": [*also]}
        await put_value(self._store, _own_key(), json.dumps(console))

    async def retire(self) -> None:
        """Say that it does not any more."""
        await delete_value(self._store, _own_key())

    async def url(self, project: str, user: str | None = None) -> str | None:
        """The address of the console that runs for this user in a project, or ``None``.

        Of several, this process's own comes first.
        """
        rows = await values_below(self._store, _OPEN)
        consoles = [(str(row["key"]) != _own_key(), json.loads(row["value"])) for row in rows]
        # One that was started in the project comes before one that shows it beside its own.
        for _, console in sorted(consoles, key=lambda c: (c[0], c[1].get("project") != project)):
            shows = project in (console.get("project"), *console.get("also", ()))
            if shows and console.get("user") == user and is_alive(console.get("owner")):
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

    async def keep_browser(self, digest: str, url: str, until: float, seen: float) -> None:
        """Remember a browser that came in at the console of ``url``."""
        value = json.dumps({"until": until, "seen": seen, "console": url})
        await put_value(self._store, _BROWSER + digest, value)

    async def browser(self, digest: str, url: str) -> tuple[float, float] | None:
        """Return until when a browser is known at a console, and when it was last used."""
        value = await get_value(self._store, _BROWSER + digest)
        if value is None or _console(value) != url:
            return None
        return _until(value), float(json.loads(value)["seen"])

    async def forget_browser(self, digest: str) -> None:
        """Let a browser in no more."""
        await delete_value(self._store, _BROWSER + digest)

    async def name(self, place: str) -> str:
        """Return the host name of the console at a place, the same as the last time."""
        value = await get_value(self._store, _NAME + place)
        if value is None or not _HOST.fullmatch(value):
            value = new_name()
            await put_value(self._store, _NAME + place, value)
        return value

    async def sweep(self) -> None:
        """Remove links and browsers whose time is over, and consoles that died."""
        dead = [
            row["key"]
            for prefix in (_TICKET, _BROWSER)
            for row in await values_below(self._store, prefix)
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
