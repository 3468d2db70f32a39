"""Progress of a download: a live line on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable

from evercontext.cli.messages import translate
from evercontext.cli.terminal import Screen, clip
from evercontext.settings import process_environment

_MEGABYTE = 1_000_000
_LIVE, _PLAIN = 0.2, 10.0
"""Seconds between two lines: more often, a terminal flickers and a log fills."""
_DUMB = (None, "", "dumb")
_SETTLING = 1.0
"""Seconds before the speed says anything about the time that is left."""


class DownloadMeter:
    """Shows how much of a download has come, of how much, and how long the rest will take."""

    def __init__(
        self, screen: Screen, name: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = screen
        self._name = name
        self._clock = clock
        self._started: float | None = None
        self._next = 0.0
        self._finished = False
        self._open = False

    def __call__(self, done: int, expected: int) -> None:
        """Take how many bytes came, of how many; 0 where that is not known."""
        now = self._clock()
        if self._started is None:
            self._started, self._next = now, now
        finished = 0 < expected <= done
        if now < self._next and (self._finished or not finished):
            return
        self._finished = finished
        live = self._screen.is_terminal and process_environment().get("TERM") not in _DUMB
        self._next = now + (_LIVE if live else _PLAIN)
        text = self._text(done, expected, now - self._started)
        if live:
            self._screen.write(f"\r{clip(text, self._screen.width - 1)}\x1b[K")
            self._open = True
        else:
            self._screen.line(text)

    def _text(self, done: int, expected: int, passed: float) -> str:
        if not expected:
            return f"{self._name}: {done / _MEGABYTE:.0f} MB"
        size = translate(
            "{done} of {size} MB", done=round(done / _MEGABYTE), size=round(expected / _MEGABYTE)
        )
        text = f"{self._name}: {size} ({done * 100 // expected} %)"
        if passed < _SETTLING or not 0 < done < expected:
            return text
        rest = _duration((expected - done) * passed / done)
        return translate("{progress}, {time} left", progress=text, time=rest)

    def end(self) -> None:
        """Close the live line."""
        if self._open:
            self._screen.line()
            self._open = False


class _Silent(DownloadMeter):
    """Shows nothing: for programs that read JSON."""

    def __init__(self) -> None:
        pass

    def __call__(self, done: int, expected: int) -> None:
        """Take it and say nothing."""

    def end(self) -> None:
        """Nothing is open."""


silent = _Silent()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return translate("{count} s", count=max(1, round(seconds)))
    minutes = round(seconds / 60)
    if minutes < 90:
        return translate("{count} min", count=minutes)
    return translate("{count} h", count=f"{minutes / 60:.1f}")
