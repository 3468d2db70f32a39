"""What is known of a tool before it is called: enough to find it and to fill its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.catalog.injection_flags import flagged
from evercontext.domain.caller_scope import OURS as OURS
from evercontext.domain.tool import Tool
from evercontext.errors import BadRequest

Mirrors = tuple[tuple[tuple[str, ...], str], ...]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_DEEPEST = 8
"""The server name of our own tools."""


@dataclass(frozen=True, slots=True)
class Card:
    """One tool in the catalog; ``key`` is always ``server:tool``."""

    key: str
    server: str
    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    mirrors: Mirrors = ()
    """Arguments, by their path, that its server wants repeated in a header of that name."""

    @property
    def parameters(self) -> str:
        """Names and descriptions of the arguments, for searching."""
        found = self.schema.get("properties")
        properties = found if isinstance(found, Mapping) else {}
        return " ".join(f"{name} {_description(about)}" for name, about in properties.items())

    @property
    def doubts(self) -> tuple[str, ...]:
        """What of its description speaks to a model instead of describing a tool."""
        return () if self.server == OURS else flagged(self.description)

    def mirrored(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that the stateless revision wants to see in headers as well."""
        found = ((token, _at(arguments, path)) for path, token in self.mirrors)
        return {f"mcp-param-{token}": value for token, value in found if value is not None}

    def to_json(self) -> dict[str, Any]:
        """The card as discovery shows it."""
        return {
            "toolKey": self.key,
            "toolName": self.name,
            "serverName": self.server,
            "description": self.description,
            "inputSchema": dict(self.schema),
            **({"flagged": list(self.doubts)} if self.doubts else {}),
        }


def mirrors_of(schema: Any, path: tuple[str, ...] = ()) -> Mirrors:
    """Find which arguments a schema wants in headers (``x-mcp-header``)."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(path) > _DEEPEST:
        return ()
    found: list[tuple[tuple[str, ...], str]] = []
    for name, about in properties.items():
        token = about.get("x-mcp-header") if isinstance(about, Mapping) else None
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            found.append(((*path, name), token))
        found.extend(mirrors_of(about, (*path, name)))
    return tuple(found)


def _at(arguments: Any, path: tuple[str, ...]) -> str | int | None:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments if isinstance(arguments, str | int) else None


def card_of(tool: Tool) -> Card:
    """Return the card of one of our own tools."""
    return Card(f"{OURS}:{tool.name}", OURS, tool.name, tool.description, tool.arguments)


def read_card(value: Any) -> Card:
    """Read a card from JSON: toolKey, serverName, toolName, description, params or inputSchema."""
    if not isinstance(value, Mapping):
        raise BadRequest("each tool of a catalog must be an object")
    name, server = value.get("toolName"), value.get("serverName", "")
    if not isinstance(name, str) or not isinstance(server, str):
        raise BadRequest("a tool of the catalog has no toolName or serverName")
    given = value.get("inputSchema")
    schema = given if isinstance(given, Mapping) else _schema_of(value.get("params"))
    key = str(value.get("toolKey") or f"{server}:{name}")
    return Card(key, server, name, str(value.get("description") or ""), schema)


def _schema_of(parameters: Any) -> dict[str, Any]:
    """Return a schema for a plain list of parameters, as catalogs in files often have."""
    named = parameters if isinstance(parameters, Sequence) else ()
    return {
        "type": "object",
        "properties": {
            str(one["name"]): {"description": str(one.get("description") or "")}
            for one in named
            if isinstance(one, Mapping) and "name" in one
        },
    }


def _description(about: Any) -> str:
    return str(about.get("description") or "") if isinstance(about, Mapping) else ""
