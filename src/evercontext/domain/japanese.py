"""Recognise Japanese by its characters."""

from __future__ import annotations

import re

_KANA = re.compile(r"[\u3041-\u30fa]")
# Kana, half-width katakana and kanji, with the signs that are written like kanji (々 and 〆).
_CHARACTER = re.compile(r"[\u3005\u3006\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f]")


def is_japanese(text: str) -> bool:
    """Return whether the text holds a character of Japanese, kanji that Chinese has included."""
    return not text.isascii() and _CHARACTER.search(text) is not None


def has_kana(text: str) -> bool:
    """Return whether the text holds kana, which no other language has."""
    return not text.isascii() and _KANA.search(text) is not None


def japanese_characters(text: str) -> list[str]:
    """Return every character of Japanese in the text, in order."""
    return _CHARACTER.findall(text)
