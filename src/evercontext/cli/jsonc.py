"""JSON with comments, edited in place: what we did not write stays as its owner wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LITERAL = re.compile(r"[^\s,\]}/\"]+")


@dataclass(frozen=True, slots=True)
class _Member:
    key: str
    start: int
    value: int
    end: int


def parse(text: str) -> Any:
    """Return the value; comments and trailing commas are passed over."""
    pieces, at = [], 0
    while at < len(text):
        after = _skip_blank(text, at)
        if after > at:
            pieces.append(" ")
        elif text[at] == '"':
            after = _string_end(text, at)
            pieces.append(text[at:after])
        else:
            after = at + 1
            if text[at] != "," or text[_skip_blank(text, after) :][:1] not in ("}", "]"):
                pieces.append(text[at])
        at = after
    return json.loads("".join(pieces).strip() or "{}")


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the member at ``path`` replaced or added, and nothing else changed."""
    start = _skip_blank(text, 0)
    if start == len(text):
        wrapped: Any = value
        for key in reversed(path):
            wrapped = {key: wrapped}
        return text + json.dumps(wrapped, indent=2, ensure_ascii=False) + "\n"
    for depth, key in enumerate(path):
        members = _members(text, start)
        member_there = next((member for member in members if member.key == key), None)
        if member_there is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, start, members, key, value)
        if depth == len(path) - 1:
            dumped = _dump(value, _indent_of(text, member_there.start))
            return text[: member_there.value] + dumped + text[member_there.end :]
        start = member_there.value
    raise ValueError("an empty path names no member")


def _insert(text: str, brace: int, members: list[_Member], key: str, value: Any) -> str:
    """Put a member first: whatever follows, a comma after it is right."""
    outer = _indent_of(text, brace)
    inner = _indent_of(text, members[0].start) if members else outer + "  "
    if members and "\n" not in text[brace : members[0].start]:
        inner = outer + "  "
    added = f"\n{inner}{json.dumps(key)}: {_dump(value, inner)}"
    rest = text[brace + 1 :]
    own_line = re.match(r"[ \t\r]*\n", rest) is not None
    gap = "," if members else ""
    if not own_line:
        gap += f"\n{inner if members else outer}"
    return text[: brace + 1] + added + gap + (rest if own_line else rest.lstrip(" \t"))


def _dump(value: Any, indent: str) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + indent)


def _indent_of(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _members(text: str, start: int) -> list[_Member]:
    if text[start : start + 1] != "{":
        raise ValueError("an object is expected")
    members, at = [], _skip_blank(text, start + 1)
    while text[at : at + 1] != "}":
        key_end = _string_end(text, at)
        colon = _skip_blank(text, key_end)
        if text[colon : colon + 1] != ":":
            raise ValueError("a colon is missing")
        value = _skip_blank(text, colon + 1)
        end = _value_end(text, value)
        members.append(_Member(json.loads(text[at:key_end]), at, value, end))
        at = _skip_blank(text, end)
        if text[at : at + 1] == ",":
            at = _skip_blank(text, at + 1)
        elif text[at : at + 1] != "}":
            raise ValueError("a comma is missing")
    return members


def _value_end(text: str, at: int) -> int:
    if text[at : at + 1] == '"':
        return _string_end(text, at)
    if text[at : at + 1] not in ("{", "["):
        literal = _LITERAL.match(text, at)
        if literal is None:
            raise ValueError("a value is missing")
        return literal.end()
    depth = 0
    while at < len(text):
        at = _skip_blank(text, at)
        char = text[at : at + 1]
        if char == '"':
            at = _string_end(text, at)
            continue
        depth += (char in ("{", "[")) - (char in ("}", "]"))
        at += 1
        if depth == 0:
            return at
    raise ValueError("it ends too early")


def _string_end(text: str, at: int) -> int:
    string = _STRING.match(text, at)
    if string is None:
        raise ValueError("a string is expected")
    return string.end()


def _skip_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at
