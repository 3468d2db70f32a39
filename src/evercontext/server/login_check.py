"""Let in whoever brings the token of a user, where the database has users."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from evercontext.access.users import KnowsUsers
from evercontext.errors import StoreForbidden, Unauthorized
from evercontext.server.token_check import USER, Headers
from evercontext.storage.login import Login, logged_in
from evercontext.storage.store import Store

_WHO = "SELECT current_login() AS name, login_role(?) AS role"
_LONGEST_TOKEN = 4_096
_HOW = "Send Authorization: Bearer <token>; evercontext users add and users token make one"


class LoginCheck:
    """Asks the database itself who a token belongs to, each time: one that ended is refused."""

    def __init__(self, store: Store, project: Callable[[], Awaitable[str]]) -> None:
        self._store, self._project = store, project

    @property
    def is_needed(self) -> bool:
        """Whether this database knows users, and this process does not own it."""
        return isinstance(self._store, KnowsUsers) and cast("KnowsUsers", self._store).needs_login

    async def check_headers(self, headers: Headers) -> Login:
        """Return the login of a request; raise ``Unauthorized`` if it has none."""
        pairs = list(headers)
        if any(name == USER for name, _ in pairs):
            raise Unauthorized("the login says who asks", fix=f"Leave {USER.decode()} out")
        values = [value for name, value in pairs if name == b"authorization"]
        scheme, _, secret = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer":
            raise Unauthorized("a login is needed", fix=_HOW)
        return await self.check(secret.strip().decode("latin-1"))

    async def check(self, secret: str) -> Login:
        """Return the login behind a token, with the user's role in the project that is served."""
        plain = secret.isascii() and secret.isprintable() and len(secret) <= _LONGEST_TOKEN
        row = None
        if secret and plain:
            project = await self._project()
            with logged_in(Login("", secret)):
                row = await self._store.fetch_one(_WHO, (project,))
        if row is None or row["name"] is None:
            raise Unauthorized("this is no login, or it has ended", fix=_HOW)
        if row["role"] is None:
            raise StoreForbidden(
                f"{row['name']} is no member of the project that is served here",
                fix="Let an admin of the project run: evercontext users grant",
            )
        return Login(str(row["name"]), secret, str(row["role"]))
