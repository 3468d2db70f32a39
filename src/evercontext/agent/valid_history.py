"""Keep a conversation's messages in a shape every provider accepts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evercontext.domain.message import Message, tool_result

INTERRUPTED = json.dumps({"ok": False, "result": None, "error": "interrupted before it finished"})


def complete_calls(messages: Sequence[Message]) -> list[Message]:
    """Give every call a result, and drop results without a call (after a crash or Ctrl-C)."""
    completed: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        completed.append(message)
        if message.tool_calls:
            completed += _results(message, messages[index + 1 :])
    return completed


def _results(caller_message: Message, following: Sequence[Message]) -> list[Message]:
    results: dict[str | None, Message] = {}
    for message in following:
        if message.role != "tool":
            break
        results.setdefault(message.tool_call_id, message)
    return [
        results.get(call.id) or tool_result(call, INTERRUPTED) for call in caller_message.tool_calls
    ]


def split_for_compaction(
    messages: Sequence[Message], keep: int
) -> tuple[list[Message], list[Message]]:
    """Cut before the user's words, so that at least the last ``keep`` messages stay whole."""
    starts = [i for i, message in enumerate(messages) if message.role == "user"]
    cut = max((i for i in starts if i <= len(messages) - keep), default=0)
    return list(messages[:cut]), list(messages[cut:])
