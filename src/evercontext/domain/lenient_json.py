"""Parse JSON as models write it: fenced, inside prose, with raw control characters.

Leniency ends where it would have to guess. A reply that was cut off, holds two objects or says the
same key twice is refused, because a guessed half of a file is worse than one more question.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

_LONGEST_LITERAL = 100_000
_FENCED = re.compile(r"```[\w+-]*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_FENCE = re.compile(r"^\s*```[\w+-]*[ \t]*$", re.MULTILINE)
_THINKING = re.compile(r"\A\s*<think(?:ing)?>(.*?)</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


class NotJson(ValueError):
    """Why a text is not the one JSON object that was asked for."""


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise NotJson("a key appears twice in one object")
    return table


def _no_constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


# strict=False lets raw control characters stand inside strings: the model meant them.
_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_without_twins, parse_constant=_no_constant
)


def decode_at(text: str, start: int) -> tuple[Any, int]:
    """Decode the JSON value at ``start``; return it and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        # A lone surrogate decodes but can never be written as UTF-8.
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotJson(f"not valid JSON: {error.msg} at character {error.pos}") from error
    except UnicodeEncodeError as error:
        raise NotJson("a string holds half of a surrogate pair") from error
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    except ValueError as error:
        raise NotJson(str(error)) from error
    return value, end


def split_thinking(text: str) -> tuple[str, str]:
    """Split ``<think>…</think>`` off the front; return (thinking, rest)."""
    match = _THINKING.match(text)
    return (match.group(1).strip(), text[match.end() :]) if match else ("", text)


def one_object(text: str) -> dict[str, Any]:
    """Return the single JSON object in ``text``; prose and fences around it are ignored."""
    start = text.find("{")
    if start < 0:
        raise NotJson("there is no JSON object in the reply")
    if text[:start].rstrip().endswith("["):
        raise NotJson("the reply is a list, not one object")
    value, end = decode_at(text, start)
    rest = _FENCE.sub("", text[end:])
    if "{" in rest:
        raise NotJson("there is more than one JSON object in the reply")
    if "}" in rest:
        raise NotJson("the braces do not match")
    assert isinstance(value, dict)
    return value


def arguments_of(text: str) -> tuple[dict[str, Any], str | None]:
    """Parse a call's arguments; return (arguments, the raw text if it was not a JSON object)."""
    bare = text.strip()
    if not bare:
        return {}, None
    if fenced := _FENCED.fullmatch(bare):
        bare = fenced[1].strip()
    value = _whole_value(bare)
    # Some servers encode the arguments twice.
    if isinstance(value, str):
        value = _whole_value(value.strip())
    return (value, None) if isinstance(value, dict) else ({}, text)


def _whole_value(text: str) -> Any:
    """Return the one value that a text is, also in Python's spelling; ``None`` if it is none."""
    try:
        value, end = decode_at(text, 0)
    except NotJson:
        return _literal(text)
    return None if text[end:].strip() else value


def _literal(text: str) -> Any:
    """Read single quotes and a comma at the end, which Python allows and JSON does not.

    A backslash means something else in either, so that is left alone.
    """
    if "\\" in text or len(text) > _LONGEST_LITERAL:
        return None
    try:
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict) and len(_keys(node)) != len(node.keys):
                return None
        value = ast.literal_eval(tree)
        json.dumps(value, allow_nan=False).encode()
        return value
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None


def _keys(node: ast.Dict) -> set[object]:
    return {key.value for key in node.keys if isinstance(key, ast.Constant)}
