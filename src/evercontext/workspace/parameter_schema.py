"""Describe a tool's arguments by JSON Schema, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]


def parameters(properties: Mapping[str, Schema], *, required: Sequence[str]) -> Schema:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def string(description: str, *, least: int | None = None) -> Schema:
    """A text."""
    limit = {} if least is None else {"minLength": least}
    return {"type": "string", "description": description, **limit}


def choice(description: str, values: Sequence[str]) -> Schema:
    """One of a few texts."""
    return {"type": "string", "enum": list(values), "description": description}


def strings(description: str) -> Schema:
    """A list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def integer(description: str, *, minimum: int) -> Schema:
    """A whole number."""
    return {"type": "integer", "minimum": minimum, "description": description}


def boolean(description: str) -> Schema:
    """Yes or no."""
    return {"type": "boolean", "description": description}


def objects(
    description: str, properties: Mapping[str, Schema], required: Sequence[str], *, most: int
) -> Schema:
    """A list, not empty, of at most so many objects."""
    items = parameters(properties, required=required)
    # The length comes first: a list that is too long is not looked through.
    limits = {"maxItems": most, "minItems": 1}
    return {"type": "array", **limits, "items": items, "description": description}
