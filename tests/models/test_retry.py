from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.backoff import Backoff
from evercontext.domain.message import user
from evercontext.domain.model import Delta, NoticeDelta, Request, complete
from evercontext.errors import ModelAuthFailed, ModelProblem, ModelUnavailable, RateLimited
from evercontext.models.openai import OpenAIModel
from evercontext.models.retry import Retrying
from evercontext.models.scripted import ScriptedModel
from tests.models.test_openai import CALLS, TEXT
from tests.models.wire_server import Answer, error, wire_server

ASK = Request([user("go")])


class Clock:
    """Remembers how long was slept, without sleeping."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def backoff(self) -> Backoff:
        return Backoff(sleep=self.sleep, clock=lambda: sum(self.slept), chance=lambda: 0.0)


def script(folder: Path, *turns: dict[str, Any]) -> ScriptedModel:
    path = folder / "s.jsonl"
    path.write_text("\n".join(json.dumps(turn) for turn in turns))
    return ScriptedModel.from_file(path)


def limited(seconds: float) -> dict[str, Any]:
    return {"error": {"code": "rate_limited", "retry_after": seconds}}


@pytest.mark.contract("E40")
async def test_one_outage_is_tried_again_once(tmp_path: Path) -> None:
    clock = Clock()
    outage = script(tmp_path, {"error": "model_unavailable"}, {"text": "ok"})
    model = Retrying(outage, clock.backoff())
    assert (await complete(model, ASK)).text == "ok"
    assert clock.slept == [0.5]


@pytest.mark.contract("E40")
async def test_waits_grow_up_to_eight_seconds_and_the_sixth_outage_is_the_end(
    tmp_path: Path,
) -> None:
    """A9: as the vendors' SDKs do it."""
    clock = Clock()
    turns = [{"error": "model_unavailable"}] * 6 + [{"text": "late"}]
    model = Retrying(script(tmp_path, *turns), clock.backoff())
    with pytest.raises(ModelUnavailable):
        await complete(model, ASK)
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 8.0]


async def test_chance_shortens_a_wait_by_a_quarter_at_most(tmp_path: Path) -> None:
    clock = Clock()
    turns = [{"error": "model_unavailable"}] * 2 + [{"text": "ok"}]
    model = Retrying(script(tmp_path, *turns), replace(clock.backoff(), chance=lambda: 1.0))
    await complete(model, ASK)
    assert clock.slept == [0.375, 0.75]


async def test_no_wait_outlasts_the_time_of_the_task(tmp_path: Path) -> None:
    """A9: what the provider asks for is waited for only where the task has that long."""
    clock = Clock()
    model = Retrying(script(tmp_path, limited(90), limited(50), {"text": "no"}), clock.backoff())
    with pytest.raises(RateLimited):
        await complete(model, replace(ASK, seconds_left=100.0))
    assert clock.slept == [90]


async def test_a_provider_that_answers_slowly_is_not_asked_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    turns = [limited(59)] * 5 + [{"text": "no"}]
    model = Retrying(script(tmp_path, *turns), clock.backoff())
    with pytest.raises(RateLimited):
        await complete(model, ASK)
    assert clock.slept == [59, 59, 59], "two minutes are over"


@pytest.mark.contract("L12", "L14")
async def test_three_attempts_wait_one_then_two_seconds(tmp_path: Path) -> None:
    clock = Clock()
    turns = [{"error": "model_unavailable"}, {"error": "model_unavailable"}, {"text": "third"}]
    inner = script(tmp_path, *turns)
    model = Retrying(inner, replace(clock.backoff(), attempts=3, first_wait=1.0))
    assert (await complete(model, ASK)).text == "third"
    assert clock.slept == [1.0, 2.0]


@pytest.mark.contract("L15")
@pytest.mark.parametrize("code", ["model_auth", "model_refused", "context_too_long", "bad_reply"])
async def test_what_will_not_change_is_not_tried_again(tmp_path: Path, code: str) -> None:
    clock = Clock()
    model = Retrying(script(tmp_path, {"error": code}, {"text": "no"}), clock.backoff())
    with pytest.raises(ModelProblem) as caught:
        await complete(model, ASK)
    assert caught.value.code == code
    assert clock.slept == []


async def test_the_provider_says_how_long_to_wait(tmp_path: Path) -> None:
    clock = Clock()
    model = Retrying(script(tmp_path, limited(7), {"text": "ok"}), clock.backoff())
    got = [delta async for delta in model.stream(ASK)]
    assert clock.slept == [7]
    assert isinstance(got[0], NoticeDelta)
    assert "7.0 s" in got[0].text


async def test_nobody_waits_an_hour(tmp_path: Path) -> None:
    clock = Clock()
    model = Retrying(script(tmp_path, limited(3600), {"text": "ok"}), clock.backoff())
    with pytest.raises(RateLimited):
        await complete(model, ASK)
    assert clock.slept == []


@pytest.mark.contract("E40")
async def test_a_line_cut_in_the_middle_is_begun_again() -> None:
    async with wire_server() as server:
        inner = OpenAIModel("m", base_url=server.url)
        server.will(Answer(TEXT[:3], cut=True), Answer(TEXT))
        model = Retrying(inner, Clock().backoff())
        got: list[Delta] = [delta async for delta in model.stream(ASK)]
        assert any(isinstance(delta, NoticeDelta) and delta.restart for delta in got)
        server.will(Answer(CALLS[:4], cut=True), Answer(TEXT))
        assert (await complete(model, ASK)).text == "Hello 世界"
        server.will(error(429, {"error": {"message": "m"}}, retry_after="1"), Answer(TEXT))
        assert (await complete(model, ASK)).text == "Hello 世界"
        server.will(error(401, {"error": {"message": "m"}}))
        with pytest.raises(ModelAuthFailed):
            await complete(model, ASK)
        await model.aclose()
