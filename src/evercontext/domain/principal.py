"""Define the user on whose behalf a call is made."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

LONGEST_USER = 64


@dataclass(frozen=True, slots=True)
class Principal:
    """The user, project and token behind a call. ``None`` means: not said."""

    user: str | None = None
    project: str | None = None
    token: str | None = None
    """The token's name, never its value; the user's, where there are logins."""
    role: str | None = None
    """What a login may do in the project: reader, member or admin. ``None``: none was needed."""


def user_name(text: object) -> str:
    """A user's name in the one spelling that every entrance uses; ``ValueError`` if it is none."""
    name = unicodedata.normalize("NFC", text).strip() if isinstance(text, str) else ""
    if not name.isprintable() or not 1 <= len(name) <= LONGEST_USER:
        raise ValueError(f"a user's name is one of 1 to {LONGEST_USER} printable characters")
    return name
