"""Validate the tools a server lists: names, sizes, schemas; and compute their digests."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from evercontext.catalog.tool_entry import CatalogEntry, definition_of, mirrors_of
from evercontext.mcp.client.listing import MOST_ITEMS as MOST_TOOLS

LARGEST_SCHEMA = 256 * 1024
LONGEST_DESCRIPTION = 8_000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FURTHER: Mapping[str, type] = {
    "title": str,
    "annotations": dict,
    "outputSchema": dict,
    "icons": list,
    "execution": dict,
    "_meta": dict,
}
"""Fields of a definition that are passed on as they are, and the kind of each."""
_META = frozenset({"tool_discovery", "tool_execute"})


def accept_tools(server: str, listed: Iterable[Any]) -> tuple[list[CatalogEntry], list[str]]:
    """Return the entries of valid tools, and a warning for each other one."""
    entries: dict[str, CatalogEntry] = {}
    warnings: list[str] = []
    for value in listed:
        if len(entries) == MOST_TOOLS:
            warnings.append(f"more than {MOST_TOOLS} tools: the rest was refused")
            break
        entry, problem = _entry(server, value)
        if entry is None or entry.name in entries:
            name = value.get("name") if isinstance(value, Mapping) else value
            warnings.append(f"{str(name)[:80]!r} was refused: {problem or 'named twice'}")
        else:
            entries[entry.name] = entry
    return list(entries.values()), warnings


def digest_of(entry: CatalogEntry) -> str:
    """Return a digest of everything a model or a client goes by."""
    fields = [entry.name, entry.description, entry.schema, *([entry.more] if entry.more else [])]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def encode_definition(entry: CatalogEntry) -> str:
    """Return a definition as it is stored."""
    return json.dumps(definition_of(entry), ensure_ascii=False)


def earlier_digest_of(entry: CatalogEntry) -> str:
    """Return the digest of name, description and schema alone, which was pinned once."""
    fields = [entry.name, entry.description, entry.schema]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _entry(server: str, value: Any) -> tuple[CatalogEntry | None, str]:
    if not isinstance(value, Mapping):
        return None, "not an object"
    name, description = value.get("name"), value.get("description") or ""
    schema = value.get("inputSchema", {"type": "object"})
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None, "a name is 1 to 64 of A-Z a-z 0-9 _ . -"
    if name in _META:
        return None, "the name is ours"
    if not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION:
        return None, f"a description has at most {LONGEST_DESCRIPTION} characters"
    problem = _schema_problem(schema)
    if problem:
        return None, problem
    key, more = f"{server}:{name}", _further_fields(value)
    return CatalogEntry(key, server, name, description, schema, mirrors_of(schema), more), ""


def _further_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else is said about a tool, as it is; a field of the wrong kind is left out."""
    fields = {
        name: value[name] for name, kind in _FURTHER.items() if isinstance(value.get(name), kind)
    }
    try:
        size = len(json.dumps(fields))
    except (ValueError, RecursionError):
        return {}
    return fields if size <= LARGEST_SCHEMA else {}


def _schema_problem(schema: Any) -> str:
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return "its schema describes no object"
    try:
        size = len(json.dumps(schema))
    except (ValueError, RecursionError):
        return "its schema cannot be written"
    if size > LARGEST_SCHEMA:
        return f"its schema has more than {LARGEST_SCHEMA} bytes"
    return "its schema refers in a circle, or elsewhere" if _circles(schema) else ""


def _circles(schema: dict[str, Any]) -> bool:
    """Tell whether a reference leads outside, or to itself."""
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str) and not _arrives(schema, node):
                return True
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return False


def _arrives(schema: dict[str, Any], node: Any) -> bool:
    seen: set[str] = set()
    while isinstance(node, dict) and isinstance(node.get("$ref"), str):
        target = node["$ref"]
        if target in seen or not target.startswith("#"):
            return False
        seen.add(target)
        node = _at(schema, target)
    return node is not None


def _at(schema: Any, pointer: str) -> Any:
    for part in pointer.lstrip("#").split("/")[1:]:
        schema = schema.get(part) if isinstance(schema, dict) else None
    return schema
