"""Parse the Hermes JSON reply: ``thought``, ``tool_calls`` and ``final_answer``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evercontext.domain.lenient_json import NotJson, one_object, split_thinking
from evercontext.domain.message import ToolCall, new_call_id
from evercontext.domain.model import ToolSpec
from evercontext.models.tool_schema import for_model

KEYS = ("thought", "tool_calls", "final_answer")
MAX_CALLS = 50


@dataclass(frozen=True, slots=True)
class JsonReply:
    """One parsed reply. With calls present the answer is provisional."""

    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    answer: str = ""


def parse(text: str) -> JsonReply:
    """Return the reply in ``text``; raise ``NotJson`` saying what is wrong with it."""
    thinking, rest = split_thinking(text)
    reply = one_object(rest)
    unknown = sorted(set(reply) - set(KEYS))
    if unknown:
        raise NotJson(f"unknown key {unknown[0]!r}; only {', '.join(KEYS)} are allowed")
    thought = _text(reply, "thought")
    return JsonReply(
        thought="\n".join(part for part in (thinking, thought) if part),
        calls=_calls(reply.get("tool_calls")),
        answer=_text(reply, "final_answer"),
    )


def _text(reply: Mapping[str, Any], key: str) -> str:
    value = reply.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NotJson(f"{key} must be a string")
    return value


def _calls(value: Any) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise NotJson("tool_calls must be a list")
    if len(value) > MAX_CALLS:
        raise NotJson(f"{len(value)} tool calls in one reply; {MAX_CALLS} is the most")
    return tuple(_call(item) for item in value)


def _call(item: Any) -> ToolCall:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise NotJson("each of tool_calls must be an object with name and parameters")
    # "arguments" is what the same models were trained to write for native calls.
    unknown = sorted(set(item) - {"name", "parameters", "arguments"})
    if unknown or {"parameters", "arguments"} <= set(item):
        raise NotJson("a tool call has only the keys name and parameters")
    parameters = item.get("parameters", item.get("arguments"))
    if parameters is not None and not isinstance(parameters, dict):
        raise NotJson("parameters must be an object")
    return ToolCall(new_call_id(), item["name"].strip(), parameters or {})


def render(thought: str, calls: Sequence[ToolCall], answer: str) -> str:
    """Return the JSON text a model would have written; what history shows it of itself."""
    reply: dict[str, Any] = {"thought": thought} if thought else {}
    if calls:
        reply["tool_calls"] = [
            {"name": call.name, "parameters": dict(call.arguments)} for call in calls
        ]
    if answer or not calls:
        reply["final_answer"] = answer
    return json.dumps(reply, ensure_ascii=False)


def schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the JSON Schema of a reply, for backends that can hold a model to one."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "parameters": for_model(tool.arguments)},
            "required": ["name", "parameters"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {
        "type": "object",
        "properties": {
            "thought": {"type": "string"},
            "tool_calls": {"type": "array", "items": {"anyOf": calls}, "maxItems": MAX_CALLS},
            "final_answer": {"type": "string"},
        },
        "additionalProperties": False,
    }
