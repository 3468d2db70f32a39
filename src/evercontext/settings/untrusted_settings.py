"""Limit what a project's ``evercontext.toml`` may set: strangers may have written it.

Each row of the schema names one of ``Project``, or how a project that nobody trusts may tighten it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

Tighter = Callable[[Any, Any], bool]


class Project(StrEnum):
    """What a project's ``evercontext.toml`` may do with a setting that it cannot only tighten."""

    FREE = "yes"
    """It changes what a person sees, and nothing that is done."""
    TRUSTED = "when trusted"
    """It executes something, or loosens or redirects what the user chose."""
    NEVER = "no"
    """It says who the user is, where things are, or who may come in."""


def fewer(brought: float, own: float) -> bool:
    """Tighten a limit of which 0 means that there is none."""
    return brought > 0 and (own == 0 or brought <= own)


def lower(brought: float, own: float) -> bool:
    """Tighten a number."""
    return brought <= own


def higher(brought: float, own: float) -> bool:
    """Tighten a bar that has to be reached."""
    return brought >= own


def off(brought: bool, own: bool) -> bool:
    """Tighten something that opens."""
    return own or not brought


def on(brought: bool, own: bool) -> bool:
    """Tighten something that guards."""
    return brought or not own
