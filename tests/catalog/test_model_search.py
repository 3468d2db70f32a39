"""A model that picks tools: believed about tools of the list, and about nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.model_search import ModelPick
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.errors import ServerProblem
from evercontext.testing import scripted_model

CARDS = [
    CatalogEntry("clock:now", "clock", "now", "Tell the current time."),
    CatalogEntry("sky:rain", "sky", "rain", "Say whether it will rain."),
]


async def pick(tmp_path: Path, turn: dict[str, Any]) -> list[dict[str, Any]]:
    provider = ModelPick(scripted_model(tmp_path / "script.jsonl", [turn]))
    return await provider.search(["what time is it"], CARDS, 5, "for a meeting")


@pytest.mark.contract("T28")
async def test_its_picks_and_reasons_are_shown(tmp_path: Path) -> None:
    picks = [
        {"tool": 2, "relevance": 7, "why": "it may rain"},
        {"tool": 1, "relevance": 0.25, "why": "asks for the time"},
        {"tool": 1, "relevance": 1, "why": "again"},
        {"tool": 99, "relevance": 1, "why": "invented"},
        "nonsense",
    ]
    text = f"Here you are:\n```json\n{json.dumps({'picks': picks})}\n```"
    found = await pick(tmp_path, {"text": text, "when": "(?s)what time is it.*for a meeting"})
    assert [(one["relevance"], one["explanation"]) for one in found] == [
        (1.0, "it may rain"),
        (0.25, "asks for the time"),
    ]
    assert {one["toolKey"] for one in found} == {"clock:now", "sky:rain"}


@pytest.mark.contract("T22", "T28")
@pytest.mark.parametrize(
    "turn", [{"text": "I would take the clock."}, {"text": "{}"}, {"error": "rate_limited"}]
)
async def test_anything_else_is_a_problem_with_a_name(tmp_path: Path, turn: dict[str, Any]) -> None:
    with pytest.raises(ServerProblem):
        await pick(tmp_path, turn)
