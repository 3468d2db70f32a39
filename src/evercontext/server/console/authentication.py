"""Authenticate browsers: a cookie from a single-use link, and a token against forgery."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from evercontext.access.console_links import Consoles
from evercontext.errors import ForeignOrigin, Unauthorized
from evercontext.server.token_check import Headers

LONGEST_SESSION = 12 * 3600
MOST_SESSIONS = 32
COOKIE = "ec_console"
CSRF = b"x-evercontext-csrf"


@dataclass(slots=True)
class BrowserSession:
    """One signed-in browser."""

    csrf: str
    until: float


@dataclass(slots=True)
class BrowserSessions:
    """Keep the signed-in browsers; they end with the server."""

    consoles: Consoles
    url: str
    """Where this console is. A browser sends a cookie to every port of a host, so each console has
    a host name of its own that nobody can guess: no other server of the machine gets the cookie."""
    _known: dict[str, BrowserSession] = field(default_factory=dict)

    async def admit(self, ticket: str) -> str | None:
        """Use a ticket up and return the cookie to set; ``None`` if it is not good (any more)."""
        if not ticket or len(ticket) > 200 or not await self.consoles.redeem(ticket, self.url):
            return None
        secret = secrets.token_urlsafe(32)
        now = time.time()
        self._known = {k: v for k, v in self._known.items() if v.until > now}
        while len(self._known) >= MOST_SESSIONS:
            del self._known[next(iter(self._known))]
        self._known[_digest(secret)] = BrowserSession(
            secrets.token_urlsafe(32), now + LONGEST_SESSION
        )
        rules = f"Path=/console/; HttpOnly; SameSite=Strict; Max-Age={LONGEST_SESSION}"
        return f"{COOKIE}={secret}; {rules}"

    def is_own_name(self, headers: Headers) -> bool:
        """True if a request calls this console by its own name."""
        host = urlsplit(self.url).netloc.encode()
        return any(name == b"host" and value.lower() == host for name, value in headers)

    def of(self, headers: Headers) -> BrowserSession | None:
        """Return the session whose cookie this request carries, to this console's own name."""
        headers = list(headers)
        if not self.is_own_name(headers):
            return None
        for name, value in headers:
            if name != b"cookie":
                continue
            try:
                cookie = SimpleCookie(value.decode("latin-1")).get(COOKIE)
            except CookieError:
                continue
            session = self._known.get(_digest(cookie.value)) if cookie else None
            if session and session.until > time.time():
                return session
        return None

    def require(self, headers: Headers) -> BrowserSession:
        """Return the session, or raise ``Unauthorized``."""
        if session := self.of(headers):
            return session
        fix = "Get a new link with: evercontext console"
        raise Unauthorized("the console is opened by a link that is good once", fix=fix)

    @staticmethod
    def require_same_page(session: BrowserSession, headers: Headers) -> None:
        """Raise unless our own page sent this: other sites cannot know the token."""
        values = [value for name, value in headers if name == CSRF]
        right = len(values) == 1 and hmac.compare_digest(values[0], session.csrf.encode())
        if not right:
            raise ForeignOrigin("a change needs the token of the console's own page")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
