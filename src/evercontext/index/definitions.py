"""Define the named parts of a file, and the chunks that show them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_MOST_SHOWN = 4
_NAME_PARTS = re.compile(r"[.:\\#/]+")


@dataclass(frozen=True, slots=True)
class Definition:
    """A named thing and the lines it spans, counted from 1."""

    name: str
    kind: str
    start: int
    end: int

    @property
    def short_name(self) -> str:
        """The name without its qualifiers: ``Base`` of ``Sinatra::Base``."""
        return short_name(self.name)


def short_name(name: str) -> str:
    """Return a definition's name without its qualifiers."""
    if name.isidentifier():
        return name
    return _NAME_PARTS.split(name.strip("\"'`"))[-1] or name


class Named(NamedTuple):
    """A definition that a chunk shows: methods are named with their class."""

    name: str
    kind: str
    begins: bool = True
    """False if it began in a chunk before this one."""

    @property
    def short_name(self) -> str:
        """The name without its class."""
        return short_name(self.name)


@dataclass(frozen=True, slots=True)
class Span:
    """One chunk: lines from 1, and the definitions that begin in it, else the one around it."""

    start: int
    end: int
    names: tuple[Named, ...] = ()

    @property
    def symbol(self) -> str | None:
        """The name of the first definition that is more than a value."""
        return main.name if (main := _main_of(self.names)) else None

    @property
    def kind(self) -> str | None:
        """What kind of definition that is."""
        return main.kind if (main := _main_of(self.names)) else None


def _main_of(names: Sequence[Named]) -> Named | None:
    return next((named for named in names if named.kind != "other"), names[0] if names else None)


def shown_symbol(names: Sequence[Named], requested: Collection[str] = ()) -> str | None:
    """Return the names by which a chunk is shown: those asked for, else all that it defines.

    What lies inside another definition of the chunk is not named beside it.
    """
    asked_names = [named.name for named in names if named.begins and named.short_name in requested]
    if not asked_names:
        all_names = {named.name for named in names}
        outer = [n for n in names if n.name.rpartition(".")[0] not in all_names] or list(names)
        asked_names = [n.name for n in outer if n.kind != "other"] or [n.name for n in outer]
    asked_names = list(dict.fromkeys(asked_names))
    more = ", …" if len(asked_names) > _MOST_SHOWN else ""
    return ", ".join(asked_names[:_MOST_SHOWN]) + more or None
