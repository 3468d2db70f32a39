from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.message import user
from evercontext.domain.model import Model, NoticeDelta, Request, complete
from evercontext.errors import ModelAuthFailed, ModelUnavailable, ModelUnknown
from evercontext.models.model_fallback import Fallback, Open
from evercontext.models.openai import OpenAIModel
from evercontext.models.scripted import ScriptedModel
from tests.models.test_openai import TEXT
from tests.models.wire_server import Answer, wire_server

ASK = Request([user("go")])
DOWN: dict[str, Any] = {"error": {"code": "model_unavailable", "message": "it is down"}}


def script(folder: Path, name: str, *turns: dict[str, Any]) -> ScriptedModel:
    path = folder / name
    path.write_text("\n".join(json.dumps(turn) for turn in turns))
    return ScriptedModel.from_file(path)


def other(model: Model) -> tuple[str, Open]:
    async def open_model() -> Model:
        return model

    return model.info.name, open_model


async def test_the_next_steps_in_and_says_so(tmp_path: Path) -> None:
    first = script(tmp_path, "one", DOWN)
    model = Fallback(first, [other(script(tmp_path, "two", {"text": "here"}))])
    got = [delta async for delta in model.stream(ASK)]
    assert isinstance(got[0], NoticeDelta)
    assert "it is down" in got[0].text
    assert "two steps in" in got[0].text
    assert model.info.name.endswith("two")


async def test_one_that_cannot_be_opened_is_passed_over(tmp_path: Path) -> None:
    async def missing() -> Model:
        raise ModelUnknown("not installed")

    third = script(tmp_path, "three", {"text": "third"})
    model = Fallback(script(tmp_path, "one", DOWN), [("two", missing), other(third)])
    assert (await complete(model, ASK)).text == "third"


async def test_all_down_is_the_last_error(tmp_path: Path) -> None:
    last: dict[str, Any] = {"error": {"code": "rate_limited", "message": "two is limited"}}
    model = Fallback(script(tmp_path, "one", DOWN), [other(script(tmp_path, "two", last))])
    with pytest.raises(ModelUnavailable, match="two is limited"):
        await complete(model, ASK)


async def test_a_wrong_key_is_not_papered_over(tmp_path: Path) -> None:
    first = script(tmp_path, "one", {"error": "model_auth"})
    model = Fallback(first, [other(script(tmp_path, "two", {"text": "no"}))])
    with pytest.raises(ModelAuthFailed):
        await complete(model, ASK)


async def test_it_stays_a_while_then_tries_the_first_again(tmp_path: Path) -> None:
    now = [100.0]
    first = script(tmp_path, "one", DOWN, {"text": "back"})
    second = script(tmp_path, "two", {"text": "a"}, {"text": "b"})
    model = Fallback(first, [other(second)], rest=60, clock=lambda: now[0])
    assert (await complete(model, ASK)).text == "a"
    assert (await complete(model, ASK)).text == "b"
    now[0] += 61
    assert (await complete(model, ASK)).text == "back"


async def test_half_an_answer_is_voided(tmp_path: Path) -> None:
    async with wire_server() as server:
        server.will(Answer(TEXT[:3], cut=True))
        first = OpenAIModel("m", base_url=server.url)
        model = Fallback(first, [other(script(tmp_path, "two", {"text": "whole"}))])
        assert (await complete(model, ASK)).text == "whole"
        await model.aclose()
