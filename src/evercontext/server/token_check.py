"""Check the token of a server, and the addresses it may be called by."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field

from evercontext.domain.principal import user_name
from evercontext.errors import BadRequest, ConfigError, ForeignHost, ForeignOrigin, Unauthorized
from evercontext.workspace.http_tool import MARKER

Headers = Iterable[tuple[bytes, bytes]]

USER = b"x-evercontext-user"
_FROM_A_MODEL = MARKER.encode()
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """True if only this machine can reach a server that listens on ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token_off_loopback(host: str, token: str | None) -> None:
    """Refuse to listen for other machines without a token."""
    if not is_loopback(host) and not token:
        raise ConfigError(
            f"listening on {host} lets other machines in, and there is no token",
            fix="Set EC_TOKEN, or listen on 127.0.0.1",
        )


@dataclass(frozen=True, slots=True)
class Token:
    """A secret, kept as its digest: comparing digests takes the same time for every guess."""

    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: str) -> Token:
        """Keep the digest of ``secret``."""
        return cls(_digest(secret.encode()))

    def check(self, headers: Headers) -> None:
        """Raise ``Unauthorized`` unless there is one ``Authorization: Bearer`` with the secret."""
        values = [value for name, value in headers if name == b"authorization"]
        scheme, _, secret = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        right = hmac.compare_digest(_digest(secret.strip()), self.digest)
        if not right or scheme.lower() != b"bearer":
            raise Unauthorized("a token is needed", fix="Send Authorization: Bearer <EC_TOKEN>")


def named_user(headers: Headers, *, trusted: bool) -> str | None:
    """The user that a request speaks for; only one that came with the token may name any."""
    values = [value for name, value in headers if name == USER]
    if not values:
        return None
    if not trusted:
        raise Unauthorized("only with the token may a user be named", fix="Set EC_TOKEN")
    try:
        return user_name(values[0].decode("utf-8", "surrogateescape") if len(values) == 1 else "")
    except ValueError as problem:
        raise BadRequest(str(problem)) from None


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


@dataclass(frozen=True, slots=True)
class Addresses:
    """The names a server goes by. Pages of other sites and rebound names are turned away."""

    hosts: frozenset[bytes]
    origins: frozenset[bytes]

    @classmethod
    def of(cls, host: str, port: int, more: Iterable[str] = ()) -> Addresses:
        """Loopback by its three names, the configured address, and ``more`` as host:port."""
        names = {f"{name}:{port}" for name in (*_LOOPBACK_NAMES, _bracketed(host))}
        if port == 80:
            names |= {*_LOOPBACK_NAMES, _bracketed(host)}
        # An address that means "all of them" is not one a client can mean.
        names -= {f"0.0.0.0:{port}", f"[::]:{port}", "0.0.0.0", "[::]"}  # noqa: S104
        hosts = {name.lower().encode() for name in (*names, *more)}
        return cls(frozenset(hosts), frozenset(b"http://" + name for name in hosts))

    def check(self, headers: Headers) -> None:
        """Raise unless the request was sent to us, by a program or by a page of ours."""
        hosts, origins, sites = [], [], []
        for name, value in headers:
            if name == _FROM_A_MODEL:
                raise ForeignOrigin("a run cannot use EverContext's own servers")
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
            elif name == b"sec-fetch-site":
                sites.append(value)
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise ForeignHost(
                "this server is not called by that name",
                fix="Use the address it printed, or add yours to EC_ALLOWED_HOSTS",
            )
        if any(origin.lower() not in self.origins for origin in origins):
            raise ForeignOrigin("requests from pages of other sites are refused")
        # Pages that fetch without CORS send no Origin; browsers tell where they come from here.
        if any(site.lower() not in (b"same-origin", b"none") for site in sites):
            raise ForeignOrigin("requests from pages of other sites are refused")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
