from __future__ import annotations

from evercontext.domain.message import ToolCall, assistant, tool_result, user
from evercontext.memory.sessions import Session
from evercontext.memory.transcript import as_markdown


def test_everything_said_and_done_is_in_it() -> None:
    call = ToolCall("1", "read_file", {"path": "日本.md"})
    said = [
        user("読んで"),
        assistant("", (call,)),
        tool_result(call, "```\ncode\n```"),
        assistant("ok"),
    ]
    session = Session("id-1", "/p", "m", "2026-01-02 03:04:05", title="読む")
    text = as_markdown(session, said)
    assert text.startswith("# 読む\n")
    for part in (
        "id-1",
        "## User\n\n読んで",
        '"path": "日本.md"',
        "````\n```\ncode\n```\n````",
        "ok",
    ):
        assert part in text
