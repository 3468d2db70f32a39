"""Arguments against a JSON Schema, for tools that bring no check of their own."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from evercontext.domain.tool import Arguments, Tool
from evercontext.errors import InvalidArguments


def checked(tool: Tool, arguments: Arguments) -> Arguments:
    """Return the arguments as the tool wants them, or raise ``InvalidArguments``."""
    if not isinstance(arguments, dict):
        raise InvalidArguments(f"{tool.name}: arguments must be one JSON object")
    if tool.check:
        return tool.check(arguments)
    problem = next(
        _validator(json.dumps(tool.arguments, sort_keys=True)).iter_errors(arguments), None
    )
    if problem:
        where = ".".join(map(str, problem.absolute_path)) or "arguments"
        raise InvalidArguments(f"{where}: {problem.message[:500]}")
    return arguments


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))
