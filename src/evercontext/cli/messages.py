"""What the terminal says, in the language of its locale."""

from __future__ import annotations

from functools import cache

from evercontext.domain.translation import catalogue
from evercontext.settings import process_environment


@cache
def language() -> str:
    """Return the language of messages, from the locale's variables in their POSIX order."""
    environment = process_environment()
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name, ""):
            return "ja" if value.lower().startswith("ja") else "en"
    return "en"


def translate(text: str, /, **values: object) -> str:
    """Return the text in the terminal's language, its ``{places}`` filled in."""
    shown = catalogue("ja").get(text, text) if language() == "ja" else text
    return shown.format(**values) if values else shown
