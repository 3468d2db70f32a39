from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evercontext.context.conversation_window import Window, describe, fit
from evercontext.context.token_estimate import TokenEstimator
from evercontext.domain.message import Message, ToolCall, assistant, system, tool_result, user
from evercontext.domain.model import ToolSpec
from evercontext.errors import ContextTooLong

ESTIMATOR = TokenEstimator("gpt-4.1-nano")
TOOL = ToolSpec("readFile", "Reads a file.", {"type": "object", "properties": {"path": {}}})


def window(tokens: int, reserve: int = 100) -> Window:
    return Window(tokens, reserve, ESTIMATOR)


def exchange(n: int, output: str) -> list[Message]:
    call = ToolCall(f"c{n}", "readFile", {"path": f"{n}.py"})
    return [
        user(f"question {n}"),
        assistant("", (call,)),
        tool_result(call, output),
        assistant(f"answer {n}"),
    ]


def conversation(*outputs: str) -> list[Message]:
    turns = [message for n, output in enumerate(outputs) for message in exchange(n, output)]
    return [system("be good"), *turns, user("the last question")]


def spent(messages: list[Message], size: Window) -> int:
    return sum(map(size.cost, messages))


def test_what_fits_is_left_as_it_is() -> None:
    messages = conversation("short", "short")
    assert fit(messages, [TOOL], window(10_000)) == messages


def test_old_tool_output_goes_first_and_the_newest_is_spared() -> None:
    messages = conversation("word " * 800, "word " * 800, "newest " * 100)
    fitted = fit(messages, [TOOL], window(1_500))
    results = [m.content for m in fitted if m.role == "tool"]
    assert "left out to fit" in results[0]
    assert results[-1] == "newest " * 100
    assert [m.role for m in fitted] == [m.role for m in messages]


def test_then_whole_old_exchanges_with_a_note() -> None:
    messages = [system("s")]
    for n in range(200):
        messages += [user(f"question {n} " * 10), assistant("answer " * 10)]
    messages.append(user("last"))
    fitted = fit(messages, [], window(1_000))
    assert "earlier exchanges" in fitted[1].content
    assert fitted[-1].content == "last"
    assert fitted[0] == messages[0]


def test_one_huge_result_of_the_last_exchange_is_cut_in_the_middle() -> None:
    call = ToolCall("c", "readFile", {})
    messages = [
        system("s"),
        user("q"),
        assistant("", (call,)),
        tool_result(call, "A" + " x" * 50_000 + "Z"),
    ]
    fitted = fit(messages, [TOOL], window(4_000))
    assert fitted[-1].content.startswith("A")
    assert fitted[-1].content.endswith("Z")


def test_nothing_to_leave_out_is_an_error() -> None:
    with pytest.raises(ContextTooLong):
        fit([system("s"), user("word " * 5000)], [], window(1_000))


@pytest.mark.contract("R3")
@settings(max_examples=80)
@given(
    st.lists(st.integers(0, 4000), max_size=8),
    st.integers(400, 4000),
    st.integers(0, 200),
)
def test_never_over_the_window_and_never_half_a_call(
    sizes: list[int], tokens: int, reserve: int
) -> None:
    messages = conversation(*["data " * size for size in sizes])
    size = window(tokens, reserve)
    try:
        fitted = fit(messages, [TOOL], size)
    except ContextTooLong:
        assert sizes or tokens < 500
        return
    assert spent(fitted, size) <= size.room([TOOL])
    assert fitted[0] == messages[0]
    assert fitted[-1] == messages[-1]
    calls = [c.id for m in fitted for c in m.tool_calls]
    assert calls == [m.tool_call_id for m in fitted if m.role == "tool"]


def test_people_can_see_what_fills_it() -> None:
    told = describe(conversation("x"), [TOOL], window(5_000))
    assert told["window"] == 5_000
    assert set(told["used"]) == {"tools", "system", "user", "assistant", "tool"}
