"""Who is in the console: a cookie from a link that was used once, and a token against forgery."""

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
from evercontext.server.auth import Headers

LONGEST_VISIT = 12 * 3600
MOST_VISITORS = 32
COOKIE = "ec_console"
CSRF = b"x-evercontext-csrf"


@dataclass(slots=True)
class Visitor:
    """One browser that came in."""

    csrf: str
    until: float


@dataclass(slots=True)
class Visitors:
    """Those who came in through a link; none of them outlives the server."""

    consoles: Consoles
    url: str
    """Where this console is. A browser sends a cookie to every port of a host, so each console has
    a host name of its own that nobody can guess: no other server of the machine gets the cookie."""
    _known: dict[str, Visitor] = field(default_factory=dict)

    async def admit(self, ticket: str) -> str | None:
        """Use a ticket up and return the cookie to set; ``None`` if it is not good (any more)."""
        if not ticket or len(ticket) > 200 or not await self.consoles.redeem(ticket, self.url):
            return None
        secret = secrets.token_urlsafe(32)
        now = time.time()
        self._known = {k: v for k, v in self._known.items() if v.until > now}
        while len(self._known) >= MOST_VISITORS:
            del self._known[next(iter(self._known))]
        self._known[_digest(secret)] = Visitor(secrets.token_urlsafe(32), now + LONGEST_VISIT)
        rules = f"Path=/console/; HttpOnly; SameSite=Strict; Max-Age={LONGEST_VISIT}"
        return f"{COOKIE}={secret}; {rules}"

    def is_own_name(self, headers: Headers) -> bool:
        """True if a request calls this console by its own name."""
        host = urlsplit(self.url).netloc.encode()
        return any(name == b"host" and value.lower() == host for name, value in headers)

    def of(self, headers: Headers) -> Visitor | None:
        """The visitor whose cookie this request carries, to this console's own name."""
        headers = list(headers)
        if not self.is_own_name(headers):
            return None
        for name, value in headers:
            if name != b"cookie":
                continue
            try:
                given = SimpleCookie(value.decode("latin-1")).get(COOKIE)
            except CookieError:
                continue
            found = self._known.get(_digest(given.value)) if given else None
            if found and found.until > time.time():
                return found
        return None

    def require(self, headers: Headers) -> Visitor:
        """The visitor, or ``Unauthorized``."""
        if visitor := self.of(headers):
            return visitor
        fix = "Get a new link with: evercontext console"
        raise Unauthorized("the console is opened by a link that is good once", fix=fix)

    @staticmethod
    def require_same_page(visitor: Visitor, headers: Headers) -> None:
        """Raise unless our own page sent this: other sites cannot know the token."""
        given = [value for name, value in headers if name == CSRF]
        right = len(given) == 1 and hmac.compare_digest(given[0], visitor.csrf.encode())
        if not right:
            raise ForeignOrigin("a change needs the token of the console's own page")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
