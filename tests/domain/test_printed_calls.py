from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.domain.message import ToolCall
from evercontext.domain.model import ToolSpec
from evercontext.domain.printed_calls import PrintedCalls

TOOLS = [
    ToolSpec("readFile", "", {"type": "object"}),
    ToolSpec("writeFile", "", {"type": "object"}),
]


def heard(text: str, size: int = 3) -> tuple[str, str, tuple[ToolCall, ...]]:
    printed = PrintedCalls(TOOLS)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    early = "".join(printed.feed(piece) for piece in pieces)
    late, calls = printed.finish()
    return early, late, calls


CALL = '{"name": "readFile", "arguments": {"path": "あ.py"}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"[{CALL}]",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"[TOOL_CALLS] [{CALL}]",
        f"<|python_tag|>{CALL}",
        '<function=readFile>{"path": "あ.py"}</function>',
        "<function=readFile>\n<parameter=path>\nあ.py\n</parameter>\n</function>",
        '{"name": "readFile", "parameters": {"path": "あ.py"}}',
        '{"name": "readfile", "arguments": "{\\"path\\": \\"あ.py\\"}"}',
        '{"type": "function", "function": {"name": "readFile", "arguments": {"path": "あ.py"}}}',
        '{"tool_calls": [{"name": "readFile", "parameters": {"path": "あ.py"}}]}',
        "{'name': 'readFile', 'arguments': {'path': 'あ.py'},}",
    ],
)
def test_every_way_models_print_a_call(text: str) -> None:
    early, late, calls = heard(text)
    assert (early, late) == ("", "")
    assert [(call.name, dict(call.arguments)) for call in calls] == [
        ("readFile", {"path": "あ.py"})
    ]


def test_several_calls_and_prose_before_them() -> None:
    text = f"I will look.\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>"
    early, late, calls = heard(text)
    assert early == "I will look.\n"
    assert late == ""
    assert len(calls) == 2
    assert calls[0].id != calls[1].id


@pytest.mark.parametrize(
    "text",
    [
        "Plain words with a < b and {braces}.",
        '{"name": "someone", "arguments": {"of": "a sentence"}}',
        '{"name": "readFile"}',
        '{"name": "readFile", "arguments": {}, "age": 3}',
        '```json\n{"version": 1}\n```',
        "```python\nprint(1)\n```",
        '{"name": "writeFile", "arguments": {"path": "a.py", "content": "def half(',
        f"{CALL} is what I would call.",
        "",
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    early, late, calls = heard(text)
    assert calls == ()
    assert early + late == text


def test_a_broken_tagged_call_is_reported_not_guessed() -> None:
    _, _, calls = heard('<tool_call>{"name": "readFile", "argu')
    assert calls[0].malformed == '{"name": "readFile", "argu'


def test_prose_is_shown_at_once() -> None:
    printed = PrintedCalls(TOOLS)
    assert printed.feed("Hello, ") == "Hello, "
    assert printed.feed("wor<too") == "wor"
    assert printed.feed("th>") == "<tooth>"


def test_without_tools_nothing_is_held() -> None:
    printed = PrintedCalls(())
    assert printed.feed(CALL) == CALL
    assert printed.finish() == ("", ())


@given(st.text(st.sampled_from('<tool_call>{}[]"name`json\n ')), st.integers(1, 7))
def test_text_is_never_lost(text: str, size: int) -> None:
    early, late, calls = heard(text, size)
    assert calls or early + late == text
