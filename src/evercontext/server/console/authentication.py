"""Authenticate browsers: a cookie from a single-use link, and a token against forgery."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from evercontext.access.console_links import Consoles
from evercontext.errors import ForeignOrigin, StoreProblem, Unauthorized
from evercontext.server.token_check import Headers

LONGEST_SESSION = 12 * 3600
LONGEST_IDLE = 2 * 3600
"""Seconds without a key or a click after which a browser has to come in anew."""
_KEEP_EVERY = 60
MOST_SESSIONS = 32
COOKIE = "ec_console"
CSRF = b"x-evercontext-csrf"
ACTIVE = b"x-evercontext-active"
"""Sent by the page while somebody uses it: what it asks for by itself is no sign of a person."""


@dataclass(slots=True)
class BrowserSession:
    """One signed-in browser."""

    csrf: str
    until: float
    seen: float
    """When somebody last did something there."""
    stored: float = 0.0
    """The ``seen`` that the store knows."""

    def is_good(self, now: float) -> bool:
        """Tell whether it is neither too old nor left alone for too long."""
        return self.until > now and now - self.seen < LONGEST_IDLE


@dataclass(slots=True)
class BrowserSessions:
    """Keep the signed-in browsers. The store has their digests, so that a server that is started
    again knows them; whoever reads it cannot sign in with that."""

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
        self._known = {k: v for k, v in self._known.items() if v.is_good(now)}
        while len(self._known) >= MOST_SESSIONS:
            oldest = next(iter(self._known))
            del self._known[oldest]
            await self.consoles.forget_browser(oldest)
        session = BrowserSession(_csrf(secret), now + LONGEST_SESSION, now)
        self._known[_digest(secret)] = session
        await self._keep(_digest(secret), session)
        rules = f"Path=/console/; HttpOnly; SameSite=Strict; Max-Age={LONGEST_SESSION}"
        return f"{COOKIE}={secret}; {rules}"

    async def _keep(self, digest: str, session: BrowserSession) -> None:
        # Without the database the browser has to come in anew after a restart, and no more.
        with suppress(StoreProblem):
            await self.consoles.keep_browser(digest, self.url, session.until, session.seen)
            session.stored = session.seen

    def is_own_name(self, headers: Headers) -> bool:
        """True if a request calls this console by its own name."""
        host = urlsplit(self.url).netloc.encode()
        return any(name == b"host" and value.lower() == host for name, value in headers)

    async def of(self, headers: Headers) -> BrowserSession | None:
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
            session = await self._find(cookie.value) if cookie else None
            if session and session.is_good(time.time()):
                return session
        return None

    async def _find(self, secret: str) -> BrowserSession | None:
        digest = _digest(secret)
        if digest not in self._known and len(secret) < 200:
            with suppress(StoreProblem):
                if row := await self.consoles.browser(digest, self.url):
                    self._known[digest] = BrowserSession(_csrf(secret), *row)
        return self._known.get(digest)

    async def require(self, headers: Headers) -> BrowserSession:
        """Return the session, or raise ``Unauthorized``; note whether a person is there."""
        headers = list(headers)
        if session := await self.of(headers):
            if (ACTIVE, b"1") in headers:
                await self.touch(session)
            return session
        fix = "Get a new link with: evercontext console"
        raise Unauthorized("the console is opened by a link that is good once", fix=fix)

    async def touch(self, session: BrowserSession) -> None:
        """Note that somebody is there."""
        session.seen = time.time()
        if session.seen - session.stored > _KEEP_EVERY:
            digest = next((k for k, known in self._known.items() if known is session), None)
            if digest:
                await self._keep(digest, session)

    @staticmethod
    def require_same_page(session: BrowserSession, headers: Headers) -> None:
        """Raise unless our own page sent this: other sites cannot know the token."""
        values = [value for name, value in headers if name == CSRF]
        right = len(values) == 1 and hmac.compare_digest(values[0], session.csrf.encode())
        if not right:
            raise ForeignOrigin("a change needs the token of the console's own page")


def _csrf(secret: str) -> str:
    """Return the token of a session's pages: another console with its cookie makes the same."""
    return hmac.digest(secret.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
