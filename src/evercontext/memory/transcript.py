"""Format a session for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from evercontext.domain.message import Message
from evercontext.memory.sessions import Session

_TITLES = {"user": "User", "assistant": "Assistant"}


def as_markdown(session: Session, messages: Sequence[Message]) -> str:
    """The whole session, calls and results included."""
    started = datetime.fromisoformat(session.started_at).replace(tzinfo=UTC)
    head = [
        f"# {session.title or 'Session'}",
        "",
        f"- session: {session.id}",
        f"- started: {started.astimezone():%Y-%m-%d %H:%M}",
        f"- model: {session.model_used}",
        f"- project: {session.project_path}",
    ]
    return "\n".join([*head, *(line for message in messages for line in _lines(message)), ""])


def _lines(message: Message) -> list[str]:
    if message.role == "tool":
        return ["", f"### Result of {message.tool_name}", "", *_fenced(message.content)]
    lines = ["", f"## {_TITLES.get(message.role, message.role)}", "", message.content]
    for call in message.tool_calls:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False, indent=2)
        lines += ["", f"### Call of {call.name}", "", *_fenced(arguments, "json")]
    return lines


def _fenced(text: str, language: str = "") -> list[str]:
    mark = "```"
    while mark in text:
        mark += "`"
    return [mark + language, text, mark]
