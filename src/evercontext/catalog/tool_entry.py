"""Define a tool of the catalog: the data to search it and to fill in its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.catalog.injection_flags import flagged
from evercontext.domain.caller_scope import OURS
from evercontext.domain.tool import Effect, Tool
from evercontext.errors import BadRequest

Mirrors = tuple[tuple[tuple[str, ...], str], ...]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One tool in the catalog; ``key`` is always ``server:tool``."""

    key: str
    server: str
    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    mirrors: Mirrors = ()
    """Arguments, by their path, that the server requires in a header of that name as well."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else the server says about it: title, annotations, output schema, icons, ``_meta``."""

    @property
    def parameters(self) -> str:
        """Names and descriptions of the arguments, for searching."""
        declared = self.schema.get("properties")
        properties = declared if isinstance(declared, Mapping) else {}
        return " ".join(f"{name} {_description(about)}" for name, about in properties.items())

    @property
    def flags(self) -> tuple[str, ...]:
        """Parts of the description that address a model instead of describing the tool."""
        return () if self.server == OURS else flagged(self.description)

    def mirrored(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that the stateless revision repeats in headers."""
        values = ((token, _at(arguments, path)) for path, token in self.mirrors)
        return {f"mcp-param-{token}": value for token, value in values if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Return the entry as ``tool_discovery`` shows it."""
        return {
            "toolKey": self.key,
            "toolName": self.name,
            "serverName": self.server,
            "description": self.description,
            "inputSchema": dict(self.schema),
            **({"flagged": list(self.flags)} if self.flags else {}),
        }


def definition_of(entry: CatalogEntry) -> dict[str, Any]:
    """Return a tool as a server lists it."""
    described = {"name": entry.name, "description": entry.description}
    return {**described, "inputSchema": dict(entry.schema), **entry.more}


def mirrors_of(schema: Any, path: tuple[str, ...] = ()) -> Mirrors:
    """Find the arguments that a schema requires in headers (``x-mcp-header``)."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(path) > _DEEPEST:
        return ()
    mirrors: list[tuple[tuple[str, ...], str]] = []
    for name, about in properties.items():
        token = about.get("x-mcp-header") if isinstance(about, Mapping) else None
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            mirrors.append(((*path, name), token))
        mirrors.extend(mirrors_of(about, (*path, name)))
    return tuple(mirrors)


def _at(arguments: Any, path: tuple[str, ...]) -> str | int | None:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments if isinstance(arguments, str | int) else None


def entry_of(tool: Tool) -> CatalogEntry:
    """Return the entry of one of our own tools."""
    return CatalogEntry(
        f"{OURS}:{tool.name}",
        OURS,
        tool.name,
        tool.description,
        tool.arguments,
        more={"title": tool.name, "annotations": annotations_of(tool)},
    )


def annotations_of(tool: Tool) -> dict[str, bool]:
    """Return the hints by which clients decide whether a call needs a person's consent."""
    return {
        "readOnlyHint": not tool.writes,
        "destructiveHint": tool.writes,
        "idempotentHint": not tool.writes,
        "openWorldHint": bool(tool.effects & Effect.NETWORK),
    }


def read_entry(value: Any) -> CatalogEntry:
    """Read an entry from JSON with toolName, serverName, description, params or inputSchema."""
    if not isinstance(value, Mapping):
        raise BadRequest("each tool of a catalog must be an object")
    name, server = value.get("toolName"), value.get("serverName", "")
    if not isinstance(name, str) or not isinstance(server, str):
        raise BadRequest("a tool of the catalog has no toolName or serverName")
    schema = value.get("inputSchema")
    schema = schema if isinstance(schema, Mapping) else _schema_of(value.get("params"))
    key = str(value.get("toolKey") or f"{server}:{name}")
    return CatalogEntry(key, server, name, str(value.get("description") or ""), schema)


def _schema_of(parameters: Any) -> dict[str, Any]:
    """Return a schema for a plain list of parameters, as catalogs in files often have."""
    named = parameters if isinstance(parameters, Sequence) else ()
    return {
        "type": "object",
        "properties": {
            str(parameter["name"]): {"description": str(parameter.get("description") or "")}
            for parameter in named
            if isinstance(parameter, Mapping) and "name" in parameter
        },
    }


def _description(about: Any) -> str:
    return str(about.get("description") or "") if isinstance(about, Mapping) else ""
