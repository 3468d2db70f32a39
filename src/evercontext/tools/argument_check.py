"""Check arguments against a JSON Schema, for tools without a check of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evercontext.domain.tool import Arguments, Tool
from evercontext.errors import InvalidArguments
from evercontext.files.absolute_paths import relative_prefix, relative_value
from evercontext.process.worker_threads import THINKING

OWN_ORIGIN = "evercontext"
_PATH_ARGUMENTS = ("path", "paths", "to", "directory")
_PREFIX = "path_prefix"
_FEW = 200
_SHORT = 16_384
"""Values, and characters of them, that are checked at once; more are checked in a thread."""


async def check_arguments(tool: Tool, arguments: Arguments) -> Arguments:
    """Return the arguments as the tool wants them, or raise ``InvalidArguments``."""
    if not isinstance(arguments, dict):
        raise InvalidArguments(f"{tool.name}: arguments must be one JSON object")
    if not tool.check and _plainly_fits(tool.arguments, arguments):
        return arguments
    if _is_small(arguments):
        return checked(tool, arguments)
    return await THINKING.run(checked, tool, arguments)


def with_relative_paths(tool: Tool, arguments: Arguments, root: str) -> Arguments:
    """Return the arguments of one of our tools, absolute paths inside the root made relative.

    Models and editors name files absolutely by habit. What is outside stays as it is: it is
    refused where paths are.
    """
    if tool.origin != OWN_ORIGIN or not root:
        return arguments
    changed = {
        name: relative_value(arguments[name], root) for name in _PATH_ARGUMENTS if name in arguments
    }
    if _PREFIX in arguments:
        changed[_PREFIX] = relative_prefix(arguments[_PREFIX], root)
    filters = arguments.get("filters")
    if isinstance(filters, dict) and _PREFIX in filters:
        changed["filters"] = {**filters, _PREFIX: relative_prefix(filters[_PREFIX], root)}
    same = all(arguments[name] == value for name, value in changed.items())
    return arguments if same else {**arguments, **changed}


def _is_small(arguments: Arguments) -> bool:
    """True for few values with short texts, found out in a few steps."""
    left, values = _FEW, [arguments]
    size = 0
    while values:
        value: Any = values.pop()
        left -= 1
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict | list):
            if len(value) > left:
                return False
            values.extend(value.values() if isinstance(value, dict) else value)
        if left < 0 or size > _SHORT:
            return False
    return True


def checked(tool: Tool, arguments: Arguments) -> Arguments:
    """Check in this thread, as long as it takes."""
    if tool.check:
        return tool.check(arguments)
    problem = next(
        _validator(json.dumps(tool.arguments, sort_keys=True)).iter_errors(arguments), None
    )
    if problem:
        where = ".".join(map(str, problem.absolute_path)) or "arguments"
        raise InvalidArguments(f"{where}: {problem.message[:500]}")
    return _with_whole_numbers(tool.arguments, arguments)


def _with_whole_numbers(schema: Mapping[str, Any], arguments: Arguments) -> Arguments:
    """To a schema 5.0 is an integer; to a tool that counts with it, it is not."""
    properties = schema.get("properties", {})
    return {
        name: int(value)
        if isinstance(value, float) and properties.get(name, {}).get("type") == "integer"
        else value
        for name, value in arguments.items()
    }


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))


_PLAIN: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool}
_UNDERSTOOD = frozenset({"type", "description", "enum", "minLength", "minimum"})


def _plainly_fits(schema: Mapping[str, Any], arguments: Arguments) -> bool:
    """True if a flat schema is met beyond doubt: most calls, at a fiftieth of the price.

    False only means that the validator has to look.
    """
    if schema.get("additionalProperties") is not False or not schema.keys() <= _FLAT:
        return False
    properties = schema.get("properties", {})
    return all(name in arguments for name in schema.get("required", ())) and all(
        name in properties and _is_plain(properties[name], value)
        for name, value in arguments.items()
    )


_FLAT = frozenset({"type", "properties", "required", "additionalProperties", "description"})


def _is_plain(schema: Mapping[str, Any], value: Any) -> bool:
    kind = _PLAIN.get(str(schema.get("type")))
    if kind is None or type(value) is not kind or not schema.keys() <= _UNDERSTOOD:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str):
        return len(value) >= int(schema.get("minLength", 0))
    return bool(value >= schema.get("minimum", value))
