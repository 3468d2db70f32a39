"""A conversation's messages, kept in a shape every provider accepts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evercontext.domain.message import Message, tool_result

INTERRUPTED = json.dumps({"ok": False, "result": None, "error": "interrupted before it finished"})


def whole(messages: Sequence[Message]) -> list[Message]:
    """Give every call a result and drop results without a call: what a crash or Ctrl-C leaves."""
    mended: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            continue
        mended.append(message)
        if message.tool_calls:
            mended += _results(message, messages[index + 1 :])
    return mended


def _results(asked: Message, following: Sequence[Message]) -> list[Message]:
    given: dict[str | None, Message] = {}
    for message in following:
        if message.role != "tool":
            break
        given.setdefault(message.tool_call_id, message)
    return [given.get(call.id) or tool_result(call, INTERRUPTED) for call in asked.tool_calls]


def split_for_compaction(
    messages: Sequence[Message], keep: int
) -> tuple[list[Message], list[Message]]:
    """Cut before the user's words, so that at least the last ``keep`` messages stay whole."""
    starts = [i for i, message in enumerate(messages) if message.role == "user"]
    cut = max((i for i in starts if i <= len(messages) - keep), default=0)
    return list(messages[:cut]), list(messages[cut:])
