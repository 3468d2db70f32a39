"""The part of a terminal that is drawn again: the unfinished block and what is being waited for.

Everything above it is written once. It never takes more than a third of the screen, so that what
scrolled away stays as it is.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence

from evercontext.cli.terminal import Screen

_SHORTEST = 3
_BETWEEN = 0.05
"""Seconds between two drawings: faster than anybody reads."""


def live_height() -> int:
    """Rows that the unfinished block may take."""
    return max(_SHORTEST, shutil.get_terminal_size().lines // 3)


class LiveRegion:
    """Rows at the end of a terminal that are erased before anything else is written."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen, self._clock = screen, clock
        self._rows = 0
        self._drawn_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether drawing now would not be too soon after the last time."""
        return self._screen.colour and self._clock() - self._drawn_at >= _BETWEEN

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in place of the former ones; each must fit into the width."""
        if not self._screen.colour:
            return
        self.erase()
        shown = list(lines)[-live_height() :]
        self._screen.write("\n".join(shown) + "\n" if shown else "")
        self._rows, self._drawn_at = len(shown), self._clock()

    def erase(self) -> None:
        """Take the lines away; what follows is written where they were."""
        if self._rows:
            self._screen.write(f"\x1b[{self._rows}A\r\x1b[J")
            self._rows = 0
