"""Truncate tool output when it is made, not when the context overflows."""

from __future__ import annotations

from typing import Any

from evercontext.events.redaction import LONGEST, MARGIN

_MOST_VALUES = 5000


def truncate(text: str, longest: int) -> tuple[str, bool]:
    """Keep the beginning and the end; say how much is missing between them."""
    if len(text) <= longest:
        return text, False
    head, tail = longest * 2 // 3, longest // 3
    missing = len(text) - head - tail
    return f"{text[:head]}\n… [{missing} characters left out] …\n{text[-tail:]}", True


def bounded(value: Any) -> Any:
    """Return a JSON value with no more in it than the log would keep: a walk of few steps."""
    return _Cutter().cut(value)


class _Cutter:
    """Copies a value until enough characters or values were copied."""

    def __init__(self) -> None:
        self._characters = LONGEST + MARGIN
        self._values = _MOST_VALUES

    def cut(self, value: Any) -> Any:
        """Return the value, without what goes too far."""
        self._values -= 1
        if isinstance(value, str):
            size, room = len(value), max(self._characters, 0)
            self._characters -= size
            return value if size <= room else f"{value[:room]}… [{size - room} more characters]"
        if isinstance(value, dict):
            return {self.cut(k): self.cut(v) for k, v in self._some(value.items())}
        if isinstance(value, list | tuple):
            return [self.cut(item) for item in self._some(value)]
        return value

    def _some(self, items: Any) -> Any:
        for item in items:
            if self._values <= 0 or self._characters <= 0:
                return
            yield item
