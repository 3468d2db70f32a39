"""Who is asking."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """The user, project and token behind a call. ``None`` means: not said."""

    user: str | None = None
    project: str | None = None
    token: str | None = None
    """The token's name, never its value."""
