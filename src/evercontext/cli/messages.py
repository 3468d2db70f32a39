"""What the terminal says, in the language of its locale."""

from __future__ import annotations

import re
from functools import cache

from evercontext.domain.translation import catalogue, sections
from evercontext.settings import process_environment

_SENTENCE = re.compile(r"\. (?=[A-Z`/])")
_PLACE = re.compile(r"\\\{(\w+)\\\}")


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


def translate_composed(text: str) -> str:
    """Return an error or a notice in the terminal's language, as far as its wording is known.

    Other packages compose them, and programs read them in English; here their patterns are looked
    up. What was an error and how to fix it are two sentences, each known or not.
    """
    if language() != "ja":
        return text
    parts = [(text[: m.start()], text[m.end() :]) for m in _SENTENCE.finditer(text)]
    # A place may hold anything, a second sentence too: two known ones are the better reading.
    for first, second in ((_composed(a), _composed(b)) for a, b in parts):
        if first is not None and second is not None:
            return f"{first}。{second}"
    if (known := _composed(text)) is not None:
        return known
    for begin, rest in parts:
        if (first := _composed(begin)) is not None:
            return f"{first}。{rest}"
        if (second := _composed(rest)) is not None:
            return f"{begin}. {second}"
    return text


def _composed(text: str) -> str | None:
    text, dot = (text[:-1], "。") if text.endswith(".") else (text, "")
    if (exact := sections("ja")["composed"].get(text) or catalogue("ja").get(text)) is not None:
        return exact + dot
    for pattern, shown in _patterns():
        if match := pattern.fullmatch(text):
            parts = {name: translate_composed(value) for name, value in match.groupdict().items()}
            return shown.format(**parts) + dot
    return None


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of composed texts, those with most words of their own first."""
    texts = sections("ja")["composed"]
    with_places = sorted((text for text in texts if "{" in text), key=_own_length, reverse=True)
    return [
        (re.compile(_PLACE.sub(r"(?P<\1>.+?)", re.escape(text)), re.DOTALL), texts[text])
        for text in with_places
    ]


def _own_length(text: str) -> int:
    return len(re.sub(r"\{\w+\}", "", text))
