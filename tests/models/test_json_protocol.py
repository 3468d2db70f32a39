from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from evercontext.domain.message import ToolCall, assistant, system, tool_result, user
from evercontext.domain.model import (
    Delta,
    EndDelta,
    ModelInfo,
    NoticeDelta,
    Request,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
    Usage,
    complete,
)
from evercontext.errors import BadReply
from evercontext.models.json_protocol import MAX_REPLY, JsonProtocol

READ = ToolSpec(
    "read_file",
    "Reads a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it is"}},
        "required": ["path"],
    },
)
ASK = Request([system("You help."), user("read a.py")], tools=[READ])


@dataclass
class Writer:
    """A text-only model that writes the given texts in turn, in small pieces."""

    texts: Sequence[str]
    stop: StopReason = "end"
    asked: list[Request] = field(default_factory=list)
    pieces: int = 0

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("test:writer", 4096, native_tools=False)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        text = self.texts[len(self.asked)]
        self.asked.append(request)
        size = max(7, len(text) // 50)
        for start in range(0, len(text), size):
            self.pieces += 1
            yield TextDelta(text[start : start + size])
        yield EndDelta(self.stop, Usage(10, 5))

    async def aclose(self) -> None:
        pass


async def deltas(
    model: JsonProtocol, request: Request = ASK, into: list[Delta] | None = None
) -> list[Delta]:
    got = [] if into is None else into
    async for delta in model.stream(request):
        got.append(delta)
    return got


@pytest.mark.contract("E13", "E14")
async def test_calls_come_as_calls_in_order() -> None:
    reply = await complete(
        JsonProtocol(
            Writer(
                [
                    '{"thought": "look", "tool_calls": [{"name": "read_file", "parameters":'
                    ' {"path": "./a.py"}}, {"name": "list_files", "parameters": {}}]}'
                ]
            )
        ),
        ASK,
    )
    assert [(call.name, dict(call.arguments)) for call in reply.tool_calls] == [
        ("read_file", {"path": "./a.py"}),
        ("list_files", {}),
    ]
    assert reply.thought == "look"
    assert reply.text == ""
    assert reply.stop == "tool_calls"
    assert len({call.id for call in reply.tool_calls}) == 2


@pytest.mark.contract("E13")
@pytest.mark.parametrize(
    "text",
    [
        '{"final_answer": "done"}',
        '```json\n{"thought": null, "tool_calls": [], "final_answer": "done"}\n```',
        '<think>so {much}</think>\n{"final_answer": "done"}',
        'Here you are:\n{"tool_calls": null, "final_answer": "done"}',
    ],
)
async def test_the_final_answer_is_the_text(text: str) -> None:
    reply = await complete(JsonProtocol(Writer([text])), ASK)
    assert (reply.text, reply.tool_calls, reply.stop) == ("done", (), "end")


@pytest.mark.contract("E16")
async def test_with_calls_the_answer_is_only_provisional() -> None:
    text = '{"tool_calls": [{"name": "read_file", "parameters": {}}], "final_answer": "It works"}'
    reply = await complete(JsonProtocol(Writer([text])), ASK)
    assert reply.text == ""
    assert reply.stop == "tool_calls"
    assert "It works" in reply.thought


BAD = {
    "no json": "I will read it.",
    "cut": '{"tool_calls": [{"name": "read_file", "para',
    "two": '{"final_answer": "a"}\n{"final_answer": "b"}',
    "extra key": '{"final_answer": "a", "confidence": 1}',
    "call key": '{"tool_calls": [{"name": "read_file", "parameters": {}, "why": "x"}]}',
    "no name": '{"tool_calls": [{"parameters": {}}]}',
    "parameters": '{"tool_calls": [{"name": "read_file", "parameters": "a.py"}]}',
    "answer type": '{"final_answer": {"text": "a"}}',
    "calls type": '{"tool_calls": {"name": "read_file"}}',
    "10 000 calls": json.dumps({"tool_calls": [{"name": "read_file"}] * 10_000}),
    "5 MB": "noise " * 850_000,
    "5 MB object": json.dumps({"final_answer": "x" * 5_000_000}),
    "empty": "",
}


@pytest.mark.contract("E13", "E40")
@pytest.mark.case(75)
@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_reply_is_asked_for_once_more(kind: str) -> None:
    writer = Writer([BAD[kind], '{"final_answer": "better"}'])
    got = await deltas(JsonProtocol(writer))
    assert [delta.text for delta in got if isinstance(delta, TextDelta)] == ["better"]
    assert sum(isinstance(delta, NoticeDelta) for delta in got) == 1
    end = got[-1]
    assert isinstance(end, EndDelta)
    again = writer.asked[1].messages
    assert again[-1].role == "user"
    assert "only keys" in again[-1].content
    assert len(again[-2].content) < 3_000
    assert list(again[:-2]) == list(writer.asked[0].messages)


@pytest.mark.contract("E35", "E40")
@pytest.mark.case(75, 76)
@pytest.mark.parametrize("kind", BAD)
async def test_bad_twice_in_a_row_gives_up_and_yields_nothing_to_run(kind: str) -> None:
    writer = Writer([BAD[kind], BAD[kind], '{"final_answer": "too late"}'])
    got: list[Delta] = []
    with pytest.raises(BadReply, match="twice in a row"):
        await deltas(JsonProtocol(writer), ASK, got)
    assert len(writer.asked) == 2
    assert all(isinstance(delta, NoticeDelta | ThoughtDelta) for delta in got)


@pytest.mark.case(75)
async def test_noise_is_not_read_to_its_end() -> None:
    writer = Writer(["x" * (10 * MAX_REPLY), '{"final_answer": "ok"}'])
    await deltas(JsonProtocol(writer))
    assert writer.pieces < 20


async def test_what_both_tries_cost_is_counted() -> None:
    reply = await complete(JsonProtocol(Writer(["no", '{"final_answer": "yes"}'])), ASK)
    assert reply.usage == Usage(20, 10)


async def test_a_reply_cut_by_the_length_limit_says_so() -> None:
    writer = Writer(['{"final_answer": "on', '{"final_answer": "one"}'], stop="length")
    got = await deltas(JsonProtocol(writer))
    assert "cut off" in writer.asked[1].messages[-1].content
    assert isinstance(got[-1], EndDelta)


@pytest.mark.contract("E15")
async def test_the_system_prompt_names_rules_and_tools() -> None:
    writer = Writer(['{"final_answer": "ok"}'])
    await deltas(JsonProtocol(writer))
    told = writer.asked[0]
    assert told.messages[0].role == "system"
    assert told.messages[0].content.startswith("You help.")
    assert "- read_file: Reads a file." in told.messages[0].content
    assert "path (string, required): Where it is" in told.messages[0].content
    assert [message.role for message in told.messages] == ["system", "user"]
    assert told.tools == [READ]
    assert told.response_schema is not None


@pytest.mark.contract("E16")
@pytest.mark.parametrize(("tool_role", "role"), [(True, "tool"), (False, "user")])
async def test_results_go_back_with_a_label(tool_role: bool, role: str) -> None:
    call = ToolCall("c1", "read_file", {"path": "あ.py"})
    writer = Writer(['{"final_answer": "ok"}'])
    history = [user("go"), assistant("", (call,)), tool_result(call, "print(1)")]
    await deltas(JsonProtocol(writer, tool_role=tool_role), Request(history, tools=[READ]))
    _, _, own, result = writer.asked[0].messages
    assert json.loads(own.content) == {
        "tool_calls": [{"name": "read_file", "parameters": {"path": "あ.py"}}]
    }
    assert "あ" in own.content
    assert own.tool_calls == ()
    assert (result.role, result.content) == (role, "Result of read_file:\nprint(1)")


async def test_the_thought_returns_in_the_history() -> None:
    first = '{"thought": "look", "tool_calls": [{"name": "read_file", "parameters": {}}]}'
    writer = Writer([first, '{"final_answer": "ok"}'])
    model = JsonProtocol(writer)
    reply = await complete(model, ASK)
    answer = tool_result(reply.tool_calls[0], "x")
    await complete(model, Request([user("go"), reply.as_message(), answer], tools=[READ]))
    assert json.loads(writer.asked[1].messages[2].content) == json.loads(first)


async def test_without_tools_the_text_is_free() -> None:
    got = await deltas(JsonProtocol(Writer(["Just words."])), Request([user("hi")]))
    assert "".join(d.text for d in got if isinstance(d, TextDelta)) == "Just words."


def test_it_stays_a_model_without_native_tools() -> None:
    assert JsonProtocol(Writer([])).info.native_tools is False


async def test_without_tools_history_is_plain() -> None:
    writer = Writer(["ok"])
    await deltas(JsonProtocol(writer), Request([user("a"), assistant("b"), user("c")]))
    assert [message.content for message in writer.asked[0].messages] == ["a", "b", "c"]


async def test_what_a_restart_voids_is_forgotten() -> None:
    class Stutterer(Writer):
        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            yield TextDelta('{"final_answer": "ha')
            yield NoticeDelta("the line broke", restart=True)
            yield TextDelta('{"final_answer": "whole"}')
            yield EndDelta()

    assert (await complete(JsonProtocol(Stutterer([])), ASK)).text == "whole"
