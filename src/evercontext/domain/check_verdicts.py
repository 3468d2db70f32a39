"""Define the verdicts of checks: the same words in traces, JSON, console and figures."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["verified", "verified with fewer tests", "red before, too", "red", "not verified"]
FEWER: Verdict = "verified with fewer tests"
BEFORE: Verdict = "red before, too"
GREEN: tuple[Verdict, ...] = ("verified", FEWER, BEFORE)
"""Verdicts without anything red that is new."""
WORST_FIRST: tuple[Verdict, ...] = ("red", "not verified", BEFORE, FEWER, "verified")
