"""Messages of JSON-RPC as text: written once, read once, and the result kept as it was written.

A relay that builds a result anew pays for it twice and may change it on the way: so the part of
the message that is the result is found while it is read, and passed on as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*").match
_S = r"[ \t\n\r]*"
_VERSION = rf'"jsonrpc"{_S}:{_S}"2\.0"'
_NUMBER = rf'"id"{_S}:{_S}(0|[1-9][0-9]{{0,15}})'
_RESULT = rf'"result"{_S}:{_S}'
_RESULT_LAST = re.compile(rf"{_S}\{{{_S}{_VERSION}{_S},{_S}{_NUMBER}{_S},{_S}{_RESULT}").match
_END = re.compile(rf"{_S}\}}{_S}").fullmatch
_RESULT_FIRST = re.compile(rf"{_S}\{{{_S}{_RESULT}").match
_REST = re.compile(rf"{_S},{_S}{_VERSION}{_S},{_S}{_NUMBER}{_S}\}}{_S}").fullmatch


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_read = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered: read, and as it wrote it."""

    value: Any
    raw: str


def read_message(line: bytes) -> tuple[dict[str, Any], str] | None:
    """Return a JSON-RPC message and the text of its result; ``None`` if it is no such message."""
    try:
        text = line.decode("utf-8")
        message, raw = _usual(text) or _members(text)
    except (ValueError, RecursionError, IndexError):
        return None
    return (message, raw) if message.get("jsonrpc") == "2.0" else None


def _usual(text: str) -> tuple[dict[str, Any], str] | None:
    """Read an answer in the two orders in which nearly all servers write it, three times faster."""
    if (head := _RESULT_LAST(text)) is not None:
        value, end = _read(text, head.end())
        number = head if _END(text, end) else None
    elif (head := _RESULT_FIRST(text)) is not None:
        value, end = _read(text, head.end())
        number = _REST(text, end)
    else:
        return None
    if number is None:
        return None
    return {"jsonrpc": "2.0", "id": int(number[1]), "result": value}, text[head.end() : end]


def _members(text: str) -> tuple[dict[str, Any], str]:
    """Read an object member by member, so that the place of each is known."""
    found: dict[str, Any] = {}
    raw = ""
    at = _space(text, 0)
    if text[at] != "{":
        raise ValueError("no object")
    at = _space(text, at + 1)
    while text[at] != "}":
        name, at = _read(text, at)
        at = _space(text, at)
        if not isinstance(name, str) or text[at] != ":":
            raise ValueError("no member")
        begin = _space(text, at + 1)
        found[name], end = _read(text, begin)
        if name == "result":
            raw = text[begin:end]
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)
            if text[at] == "}":
                raise ValueError("a comma before nothing")
        elif text[at] != "}":
            raise ValueError("no comma")
    if _space(text, at + 1) != len(text):
        raise ValueError("more than one value")
    return found, raw


def _space(text: str, at: int) -> int:
    found = _SPACE(text, at)
    return found.end() if found else at


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line without its end."""
    whole = {"jsonrpc": "2.0", **message}
    return _write(whole).encode("utf-8", "backslashreplace")
