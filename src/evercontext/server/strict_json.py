"""Parse JSON strictly: refuse what two parsers could read differently."""

from __future__ import annotations

import json
import math
from typing import Any

from evercontext.errors import InvalidArguments

DEEPEST = 64
"""Levels of nesting that are read; no request of ours needs more than a few."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is there twice")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite
)


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the one JSON object that ``body`` is; raise ``InvalidArguments`` otherwise."""
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidArguments("the body is not UTF-8") from None
    except RecursionError:
        raise InvalidArguments("the body is nested too deeply") from None
    except ValueError as error:
        raise InvalidArguments(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArguments("the body must be one JSON object")
    if too_deep(value):
        raise InvalidArguments("the body is nested too deeply")
    return value


def too_deep(value: Any, left: int = DEEPEST) -> bool:
    """True if ``value`` is nested over ``left`` levels."""
    if isinstance(value, dict):
        return left == 0 or any(too_deep(item, left - 1) for item in value.values())
    if isinstance(value, list):
        return left == 0 or any(too_deep(item, left - 1) for item in value)
    return False
