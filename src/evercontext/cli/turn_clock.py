"""How long a turn takes and how much was written in it, for lines that are drawn while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from evercontext.cli.messages import translate

_LETTERS_PER_TOKEN = 4


class TurnClock:
    """Counts the seconds and, roughly, the tokens of a turn."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._narrow = self._wide = 0

    def start(self) -> None:
        """Begin a turn."""
        self._began, self._narrow, self._wide = self._clock(), 0, 0

    def stop(self) -> None:
        """End the turn; nothing is shown until the next one."""
        self._began = None

    def count(self, text: str) -> None:
        """Count a piece of an answer."""
        narrow = sum(map(str.isascii, text))
        self._narrow += narrow
        self._wide += len(text) - narrow

    def parts(self) -> list[str]:
        """Return the seconds and the tokens, as far as there are any."""
        if self._began is None:
            return []
        tokens = self._narrow // _LETTERS_PER_TOKEN + self._wide
        seconds = int(self._clock() - self._began)
        spent = translate("{count} s", count=seconds)
        if seconds >= 60:
            minutes, rest = divmod(seconds, 60)
            spent = translate("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
        return [spent, *([translate("~{count} tokens", count=f"{tokens:,}")] if tokens else [])]
