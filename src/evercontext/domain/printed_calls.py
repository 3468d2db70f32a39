"""Recognise tool calls that a local model printed as text.

Text is passed on as it streams; from the first thing that may be a call it is held back until the
end, when it is either a call or was text after all. Plain JSON counts only if it names a tool that
was offered; explicit markup counts always, so that an unknown name gets its error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from evercontext.domain.call_markup import (
    MARKS,
    READERS,
    edit_blocks,
    python_calls,
    until_last,
)
from evercontext.domain.lenient_json import NotJson, arguments_of, decode_at
from evercontext.domain.message import ToolCall, new_call_id
from evercontext.domain.model import ToolSpec
from evercontext.domain.token_markup import Written, without_dsml

_MARKS = (
    *("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>", "```json", "```tool_call"),
    *MARKS,
)
_OPENINGS = ("{", "[", "```")
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^<>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^<>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_PREFIX = re.compile(r"\A\s*(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>)")
_EDITORS = ("replaceinfile", "edit_file")
_LONGEST_LINE_BEFORE = 400
_FENCES = ("```", "```json", "```tool_call")
_GAP = re.compile(r"[ \t\r\n,;]*")
_LONGEST_REPAIRED = 2_000
"""Characters: a repair takes time in proportion to their square."""


class PrintedCalls:
    """Watches one streamed text for calls of the offered tools."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._names = {tool.name.lower(): tool.name for tool in tools}
        self._pending = ""
        self._waiting: list[str] = []
        """Pieces that come after it and decide nothing, put together when something does."""
        self._before = ""
        """The end of what was passed on: a path may stand there."""
        self._begun = False
        self._held = not self._names
        self._off = not self._names

    def feed(self, text: str) -> str:
        """Take a piece; return what can be shown now."""
        if self._off:
            return text
        self._waiting.append(text)
        if self._held or not (self._begun or text.strip()):
            return ""
        self._gather()
        return self._release(self._safe_length())

    def _gather(self) -> None:
        self._pending = "".join([self._pending, *self._waiting])
        self._waiting.clear()

    def _safe_length(self) -> int:
        start = self._pending.lstrip()
        if not self._begun and (not start or start.startswith(_OPENINGS)):
            self._held = bool(start)
            return 0
        places = [at for mark in _MARKS if (at := self._pending.find(mark)) >= 0]
        if places:
            self._held = True
            return min(places)
        return len(self._pending) - self._tail()

    def _tail(self) -> int:
        """Length of the end that may be the beginning of a mark."""
        longest = max(len(mark) for mark in _MARKS) - 1
        for size in range(min(longest, len(self._pending)), 0, -1):
            if any(mark.startswith(self._pending[-size:]) for mark in _MARKS):
                return size
        return 0

    def _release(self, length: int) -> str:
        shown, self._pending = self._pending[:length], self._pending[length:]
        self._before = (self._before + shown)[-_LONGEST_LINE_BEFORE:]
        self._begun = self._begun or bool(shown.strip())
        return shown

    def finish(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the rest: text that was none, and the calls that were found."""
        self._gather()
        rest, self._pending = self._pending, ""
        calls = () if self._off else self._recover(rest)
        return ("", calls) if calls else (rest, ())

    def _recover(self, text: str) -> tuple[ToolCall, ...]:
        text = without_dsml(text)
        editor = next((self._names[name] for name in _EDITORS if name in self._names), None)
        for read in READERS:
            if written := read(text):
                patches = written[0][0] == "apply_patch"
                return tuple(map(self._written, written)) if editor or not patches else ()
        if editor and (blocks := edit_blocks(self._before, text)):
            return tuple(self._written((editor, {"path": p, "diff": d})) for p, d in blocks)
        if "<function=" in text:
            return tuple(self._function(*match) for match in _FUNCTION.findall(text))
        if "<tool_call>" in text:
            bodies = [body for body in _TAGGED.findall(text) if body.strip()]
            return tuple(self._tagged(body) for body in bodies)
        prefixed = _PREFIX.match(text)
        body = text[prefixed.end() :] if prefixed else text
        fenced = _unfenced(body)
        body = body.split("<|/tool_call|>")[0]
        if calls := python_calls(body):
            known = all(name.lower() in self._names for name, _ in calls)
            return tuple(map(self._written, calls)) if known else ()
        values = _values(body if fenced is None else fenced)
        from_json = [self._from_json(value, any_name=bool(prefixed)) for value in values]
        named = tuple(call for call in from_json if call is not None)
        return named if len(named) == len(from_json) else ()

    def _written(self, written: Written) -> ToolCall:
        name, arguments = written
        if isinstance(arguments, str):
            return ToolCall(new_call_id(), self._known(name), *arguments_of(arguments))
        return ToolCall(new_call_id(), self._known(name), arguments)

    def _tagged(self, body: str) -> ToolCall:
        values = _values(body)
        call = self._from_json(values[0], any_name=True) if len(values) == 1 else None
        return call or ToolCall(new_call_id(), "unknown", {}, malformed=body.strip())

    def _function(self, name: str, body: str) -> ToolCall:
        parameters = _PARAMETER.findall(until_last(body, "</parameter>"))
        if parameters:
            return ToolCall(new_call_id(), self._known(name), dict(parameters))
        arguments, malformed = arguments_of(body)
        return ToolCall(new_call_id(), self._known(name), arguments, malformed)

    def _from_json(self, value: Mapping[str, Any], *, any_name: bool) -> ToolCall | None:
        inner = value.get("function")
        about = inner if isinstance(inner, dict) else value
        name = about.get("name")
        arguments = about.get("arguments", about.get("parameters"))
        if not isinstance(name, str) or set(about) - _CALL_KEYS:
            return None
        if not any_name and (name.lower() not in self._names or arguments is None):
            return None
        if isinstance(arguments, str):
            return ToolCall(new_call_id(), self._known(name), *arguments_of(arguments))
        return ToolCall(
            new_call_id(), self._known(name), arguments if isinstance(arguments, dict) else {}
        )

    def _known(self, name: str) -> str:
        return self._names.get(name.lower(), name)


def _unfenced(text: str) -> str | None:
    """Return what stands in the fence that a text is; ``None`` if it is not one."""
    first, _, rest = text.strip().partition("\n")
    fenced = first.rstrip() in _FENCES and rest.endswith("```")
    return rest.removesuffix("```") if fenced else None


_CALL_KEYS = {"name", "arguments", "parameters", "type", "id"}


def _values(text: str) -> list[Mapping[str, Any]]:
    """Return the JSON objects that make up ``text``, alone, in a row or in a list; else none."""
    values: list[Any] = []
    text = text.strip()
    at = 0
    while at < len(text):
        try:
            value, at = decode_at(text, at)
        except NotJson:
            return _repaired(text)
        values += value if isinstance(value, list) else [value]
        if gap := _GAP.match(text, at):
            at = gap.end()
    return _objects(values)


def _repaired(text: str) -> list[Mapping[str, Any]]:
    # Only what ends like an object: a repaired fragment would be half a file.
    ends_like_one = text.startswith(("{", "[")) and text.endswith(("}", "]"))
    if not ends_like_one or len(text) > _LONGEST_REPAIRED:
        return []
    from json_repair import repair_json

    value = repair_json(text, return_objects=True)
    return _objects(value if isinstance(value, list) else [value])


def _objects(values: list[Any]) -> list[Mapping[str, Any]]:
    flat = [
        call
        for value in values
        for call in (_inner_calls(value) if isinstance(value, dict) else [value])
    ]
    return flat if all(isinstance(value, dict) for value in flat) else []


def _inner_calls(value: dict[str, Any]) -> list[Any]:
    inner = value.get("tool_calls")
    return inner if isinstance(inner, list) and inner else [value]
