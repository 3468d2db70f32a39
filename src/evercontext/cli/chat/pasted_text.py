"""Long pasted text: a short mark in the input, the text itself in the message."""

from __future__ import annotations

import re

from evercontext.cli.terminal import counted

_MOST_CHARACTERS, _MOST_LINES = 1000, 15
_MARK = re.compile(r"\[Pasted text #(\d+), [^\]\n]*\]")


class PastedTexts:
    """The texts behind the marks of one session."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def collapse(self, text: str) -> str:
        """Return what the input shows of a pasted text: itself, or a mark where it is long."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if len(text) <= _MOST_CHARACTERS and lines <= _MOST_LINES:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        return f"[Pasted text #{number}, {counted(lines, 'line')}]"

    def expand(self, text: str) -> str:
        """Put the texts back where their marks still stand."""
        return _MARK.sub(lambda mark: self._texts.get(int(mark[1]), mark[0]), text)
