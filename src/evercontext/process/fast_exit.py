"""End the process without loading anything slow."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

_EAGER = 0.0002
"""Seconds that a thread runs while others wait, once this process shall end."""
_signals: list[int] = []


def hurry(code: int) -> None:
    """From here on, end: threads at work on what nobody waits for must not delay each step."""
    _signals.append(code)
    sys.setswitchinterval(_EAGER)


def leave(code: int) -> NoReturn:
    """End this process with ``code``: at once if it was told to stop, else as Python does.

    All is closed and said by then. To take Python itself down needs thirty times the processor
    time of the rest of a stop, which are seconds on a busy machine.
    """
    if _signals:
        os._exit(code)
    sys.exit(code)
