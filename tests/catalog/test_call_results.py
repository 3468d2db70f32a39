"""What a tool answered: blocks as they are, bounded, one copy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evercontext.catalog.call_results import LONGEST_TEXT, as_tool_result, without_second_copy
from evercontext.mcp.messages import Result
from tests.catalog.rich_server import SHOWN


def result_of(answer: dict[str, Any]) -> Result:
    return Result(answer, json.dumps(answer))


def test_blocks_are_not_touched_and_a_model_reads_their_text() -> None:
    """C4, P10: images, audio, links and embedded resources pass; no base64 in the text."""
    result = as_tool_result(result_of(SHOWN))
    assert result.data is SHOWN
    assert result.raw == json.dumps(SHOWN)
    lines = result.text.splitlines()
    assert lines[0] == "what I saw: 画像"
    assert lines[1].startswith("[image: image/png, ")
    assert lines[3:] == ["[link: today memo://today]", "inside"]


def test_what_is_too_long_is_cut_and_says_so() -> None:
    """P10: structured content of any size went through."""
    text = "x" * (LONGEST_TEXT * 2)
    image = {"type": "image", "data": "A" * LONGEST_TEXT, "mimeType": "image/png"}
    answer = {"content": [{"type": "text", "text": text}, image], "structuredContent": {"t": text}}
    result = as_tool_result(result_of(answer))
    cut, same, note = result.data["content"]
    assert len(cut["text"]) < LONGEST_TEXT + 100
    assert "characters left out" in cut["text"]
    assert same == image
    assert "structured content left out" in note["text"]
    assert json.loads(result.raw or "") == result.data
    assert "structuredContent" not in result.data


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (['{"a": 1}'], {"a": 1}),
        (["3"], {"result": 3}),
        (["three"], {"result": "three"}),
        (["a", "b"], {"result": ["a", "b"]}),
        (['{"a": 1}', '{"a": 2}'], {"result": [{"a": 1}, {"a": 2}]}),
    ],
)
def test_what_only_repeats_the_text_is_sent_once(texts: list[str], structured: Any) -> None:
    """P11, C5: some clients show a model the structured copy, some both."""
    content = [{"type": "text", "text": text} for text in texts]
    answer = {"content": content, "structuredContent": structured}
    assert without_second_copy(answer) == {"content": content}


@pytest.mark.parametrize(
    "answer",
    [
        SHOWN,
        {"content": [{"type": "text", "text": "2 rows"}], "structuredContent": {"rows": [1, 2]}},
        {"content": [], "structuredContent": {"a": 1}},
        {"content": [{"type": "text", "text": "plain"}]},
    ],
)
def test_what_adds_something_stays(answer: dict[str, Any]) -> None:
    assert without_second_copy(answer) is answer


def test_an_answer_of_data_alone_is_text_for_a_model() -> None:
    result = as_tool_result(result_of({"content": [], "structuredContent": {"a": "é"}}))
    assert result.text == '{"a":"é"}'
