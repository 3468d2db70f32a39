"""What the terminal says, in the language of its locale."""

from __future__ import annotations

import re
from functools import cache

from evercontext.domain.translation import catalogue, sections
from evercontext.settings.environment import process_environment

_SENTENCE = re.compile(r"\. (?=[A-Z`/])")
_PLACE = re.compile(r"\{(\w+)\}")


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
        # Most patterns are ruled out by words of theirs: only few are ever compiled.
        if all(part in text for part in pattern.own) and (match := pattern.match(text)):
            parts = {name: _in_place(value) for name, value in match.items()}
            return shown.format(**parts) + dot
    return None


def _in_place(text: str) -> str:
    """Return what fills a place: a name stays as it is, a reason is translated, and a list of them.

    A project may be called Search, and a skill review: single words are names unless the composed
    texts know them.
    """
    if " " not in text:
        return sections("ja")["composed"].get(text, text)
    return "; ".join(map(translate_composed, text.split("; ")))


class _Pattern:
    """A text with places, compiled when it is first needed."""

    def __init__(self, text: str) -> None:
        self.own = [part for part in _PLACE.split(text)[::2] if part]
        self.length = sum(map(len, self.own))
        self._text = text
        self._compiled: re.Pattern[str] | None = None

    def match(self, text: str) -> dict[str, str] | None:
        if self._compiled is None:
            escaped = re.escape(self._text).replace(r"\{", "{").replace(r"\}", "}")
            places = _PLACE.sub(r"(?P<\1>.+?)", escaped)
            self._compiled = re.compile(places, re.DOTALL)
        match = self._compiled.fullmatch(text)
        return match.groupdict() if match else None


@cache
def _patterns() -> list[tuple[_Pattern, str]]:
    """Return the patterns of composed texts, those with most words of their own first."""
    texts = sections("ja")["composed"]
    patterns = [(_Pattern(text), shown) for text, shown in texts.items() if _PLACE.search(text)]
    return sorted(patterns, key=lambda entry: entry[0].length, reverse=True)
