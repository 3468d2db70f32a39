"""The login that statements of a shared database run under: that of the request at hand.

A server answers many people at once. Each request says who it is for in a context variable, which
the tasks it starts inherit; a process of one person has one login for all it does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

PREFIX = "ecl_"


@dataclass(frozen=True, slots=True)
class Login:
    """A user, and the secret by which the database itself knows them."""

    user: str
    secret: str = field(repr=False)
    role: str | None = None
    """What the user may do in the project that is served."""


_current: ContextVar[Login | None] = ContextVar("evercontext_login", default=None)


def current_login() -> Login | None:
    """Return the login of the request at hand."""
    return _current.get()


def use_login(login: Login) -> None:
    """Run what follows in this task, and in tasks it starts, under a login."""
    _current.set(login)


@contextmanager
def logged_in(login: Login | None) -> Iterator[None]:
    """Run a block under a login; ``None`` changes nothing."""
    if login is None:
        yield
        return
    before = _current.set(login)
    try:
        yield
    finally:
        _current.reset(before)


def digest_of(secret: str) -> str:
    """Return what is stored of a secret; it has 256 random bits, so nothing slower is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
