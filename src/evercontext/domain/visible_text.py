"""Escape characters that could steer a terminal or hide text."""

from __future__ import annotations

import re

# C0 and C1 controls but newline and tab, direction overrides, separators, fillers that show
# nothing, byte order marks, lone surrogates, and the tag characters that can smuggle ASCII.
_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b"
    "\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
# Parts of emoji and of Japanese names, and blanks that look like a space: harmless to read, but
# not the same to a program.
_LOOKALIKES = "\u00a0\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_HIDDEN = re.compile(f"[{_CONTROLS}]")
_NOT_EXACT = re.compile(f"[{_CONTROLS}{_LOOKALIKES}]")
_NOT_EXACT_COMMAND = re.compile(f"[{_CONTROLS}{_LOOKALIKES}\u3000]")


def visible(text: str) -> str:
    """Return the text with every control character written out, such as ``\\x1b``."""
    return _HIDDEN.sub(_escaped, text.replace("\r\n", "\n"))


def exact(text: str, *, command: bool = False) -> str:
    """Return the text so that no two that differ look alike, for whoever has to judge it.

    In a ``command`` U+3000 is written out too: to a shell it is a letter, not a blank.
    """
    return (_NOT_EXACT_COMMAND if command else _NOT_EXACT).sub(_escaped, text)


def escaped_line(text: str, longest: int | None = None) -> str:
    """Return the text as one line without anything that does not print, cut to ``longest``."""
    text = text[:longest]
    if text.isprintable():
        return text
    characters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(characters)[:longest]


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
