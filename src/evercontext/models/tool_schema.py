"""Adapt the schema of a tool for models: servers turn it into a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_REPEATED = 1_000
"""llama.cpp drops the whole grammar, and says nothing, where something may repeat oftener."""
_LIMITS = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")


def for_model(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without limits on size that no answer comes near.

    They are checked when the tool is called; a model only needs to know the shape.
    """
    return {key: _part(value) for key, value in schema.items() if not _is_large(key, value)}


def _part(value: Any) -> Any:
    if isinstance(value, Mapping):
        return for_model(value)
    return [_part(item) for item in value] if isinstance(value, list | tuple) else value


def _is_large(key: str, value: Any) -> bool:
    return key in _LIMITS and isinstance(value, int) and value > MOST_REPEATED
