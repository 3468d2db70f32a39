from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.message import user
from evercontext.domain.model import Reply, Request, TextDelta, ToolSpec, Usage, complete
from evercontext.errors import (
    BadReply,
    ConfigError,
    ModelAuthFailed,
    ModelRefused,
    ModelUnknown,
    RateLimited,
)
from evercontext.models.scripted import ScriptedModel

TOOLS = [ToolSpec("read_file", "Reads.", {"type": "object", "properties": {}})]


def script(folder: Path, *turns: dict[str, Any]) -> ScriptedModel:
    path = folder / "script.jsonl"
    path.write_text("\n".join(json.dumps(turn) for turn in turns), encoding="utf-8")
    return ScriptedModel.from_file(path)


async def ask(model: ScriptedModel, text: str = "go", **hints: str) -> Reply:
    return await complete(model, Request([user(text)], tools=TOOLS, hints=hints))


async def test_turns_are_played_in_order(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {
            "thought": "hm",
            "tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}],
            "usage": {"input_tokens": 3, "output_tokens": 4},
        },
        {"tool_calls": [{"id": "x", "name": "read_file", "parameters": {"path": "b"}}]},
        {"text": "完了しました。" * 20},
    )
    first, second, third = [await ask(model) for _ in range(3)]
    assert dict(first.tool_calls[0].arguments) == {"path": "a"}
    assert (first.stop, first.usage, first.thought) == ("tool_calls", Usage(3, 4), "hm")
    assert (second.tool_calls[0].id, dict(second.tool_calls[0].arguments)) == ("x", {"path": "b"})
    assert (third.text, third.stop) == ("完了しました。" * 20, "end")


async def test_text_is_streamed_in_pieces(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "word " * 30})
    got = [delta async for delta in model.stream(Request([user("go")]))]
    assert sum(isinstance(delta, TextDelta) for delta in got) > 3


async def test_when_and_role_choose_the_turn(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"when": "task (two|2)", "text": "second"},
        {"role": "planner", "text": "a plan"},
        {"role": "assistant", "text": "anyone"},
    )
    assert (await ask(model, "do task one")).text == "anyone"
    assert (await ask(model, "do task 2")).text == "second"
    assert (await ask(model, "plan", role="planner")).text == "a plan"


async def test_an_exhausted_script_names_itself(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "once"})
    await ask(model)
    with pytest.raises(ModelRefused, match=r"script\.jsonl has no turn left.*1 of 1 used"):
        await ask(model)


@pytest.mark.contract("E13")
async def test_raw_goes_through_the_json_protocol(tmp_path: Path) -> None:
    model = script(tmp_path, {"raw": '```json\n{"final_answer": "hello"}\n```'})
    assert model.info.native_tools is False
    assert (await ask(model)).text == "hello"


@pytest.mark.contract("E35", "E40")
@pytest.mark.case(75)
async def test_raw_garbage_twice_is_a_bad_reply(tmp_path: Path) -> None:
    model = script(tmp_path, {"raw": "nope"}, {"raw": "{"}, {"text": "never"})
    with pytest.raises(BadReply):
        await ask(model)


async def test_raw_garbage_once_takes_the_next_turn(tmp_path: Path) -> None:
    model = script(tmp_path, {"raw": "nope"}, {"tool_calls": [{"name": "read_file"}]})
    assert [call.name for call in (await ask(model)).tool_calls] == ["read_file"]


async def test_errors_are_raised_by_code_or_class(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"error": {"code": "rate_limited", "retry_after": 3, "message": "slow down"}},
        {"error": "ModelAuthFailed"},
    )
    with pytest.raises(RateLimited, match="slow down") as caught:
        await ask(model)
    assert caught.value.retry_after == 3
    with pytest.raises(ModelAuthFailed):
        await ask(model)


async def test_malformed_arguments_can_be_played(tmp_path: Path) -> None:
    model = script(tmp_path, {"tool_calls": [{"name": "read_file", "arguments": '{"path": '}]})
    call = (await ask(model)).tool_calls[0]
    assert (dict(call.arguments), call.malformed) == ({}, '{"path": ')


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"text": "a", "temperature": 1}',
        '{"text": 5}',
        '{"error": "no_such_error"}',
        '{"error": "ClassVar"}',
        '{"when": "(", "text": "a"}',
        '{"tool_calls": [{"arguments": {}}]}',
        '{"text": "a", "usage": {"tokens": 1}}',
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"text": "fine"}}\n\n{line}\n')
    with pytest.raises(ConfigError, match=r"s\.jsonl, line 3"):
        ScriptedModel.from_file(path)


def test_a_missing_script_is_an_unknown_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnknown, match=r"none\.jsonl"):
        ScriptedModel.from_file(tmp_path / "none.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelUnknown, match="not UTF-8"):
        ScriptedModel.from_file(tmp_path / "binary")


@pytest.mark.parametrize("told", [-5, 10**20, 1e308, float("nan"), "many", None])
async def test_what_is_no_number_of_tokens_counts_as_not_told(tmp_path: Path, told: Any) -> None:
    usage = {"input_tokens": 7, "output_tokens": told}
    assert (await ask(script(tmp_path, {"text": "hm", "usage": usage}))).usage == Usage(7, 0)


async def test_halves_of_characters_are_joined_or_replaced(tmp_path: Path) -> None:
    padding = "x" * 23  # a piece of the stream ends between the halves
    said = (await ask(script(tmp_path, {"text": f"{padding}\ud83d\ude00 and \ud800"}))).text
    assert said == f"{padding}\U0001f600 and \ufffd"
