"""Cache a value read from the database until the version of the database changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar, runtime_checkable

from evercontext.storage.store import Store

_Value = TypeVar("_Value")


@runtime_checkable
class Versioned(Protocol):
    """A store that can tell cheaply whether anything in it is new."""

    def version(self) -> int | None:
        """Return a number that changes with every commit, or ``None`` if it is not known now."""
        ...


class VersionCache(Generic[_Value]):
    """Value that is read again only after a commit, of this or any other process."""

    def __init__(self, store: Store, read: Callable[[], Awaitable[_Value]]) -> None:
        self._versioned = store if isinstance(store, Versioned) else None
        self._read = read
        self._known: tuple[int, _Value] | None = None

    async def get(self) -> _Value:
        """Return the value as of now."""
        # Asked before reading: a commit in between makes the next question read again.
        version = self._versioned.version() if self._versioned else None
        known = self._known
        if known is not None and known[0] == version:
            return known[1]
        value = await self._read()
        self._known = None if version is None else (version, value)
        return value
