"""Tell somebody who looked away that it is their turn: the bell, and OSC 9 where it is shown."""

from __future__ import annotations

from collections.abc import Mapping

from evercontext.cli.terminal import one_line

PATIENCE = 10.0
"""Seconds after which a person has looked away."""
_SHOWS_OSC_9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "WarpTerminal"})
_LONGEST = 80


def notification(text: str, environment: Mapping[str, str]) -> str:
    """Return what is written to the terminal."""
    known = environment.get("TERM_PROGRAM", "") in _SHOWS_OSC_9 or "WT_SESSION" in environment
    shown = one_line(text)[:_LONGEST]
    return f"\x1b]9;{shown}\x07" if known else "\x07"
