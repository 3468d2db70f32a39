"""How deep the four journeys are, as ``benchmarks/journeys.py`` measures them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_repository import HERE

MOST_FRAMES = {"run": 30, "REST": 18, "search": 9, "router": 21}


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("journeys", HERE / "benchmarks/journeys.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("journey", MOST_FRAMES)
def test_a_journey_is_short_and_goes_down_only(
    script: ModuleType, tmp_path: Path, journey: str
) -> None:
    seen = script.Checkout(HERE, tmp_path.resolve()).travel(journey)
    path = script.frames(seen)
    assert len(path) <= MOST_FRAMES[journey], path
    assert script.steps_upward(path, script.layers(HERE)) == []


def test_a_step_upward_is_recognised(script: ModuleType) -> None:
    order = {"server": 0, "catalog": 1, "tools": 2, "process": 3}
    down = [["server.rest", "f"], ["tools.toolbox", "call"], ["catalog.servers", "run"]]
    assert script.steps_upward(down, order) == []
    up = [["server.http", "f"], ["catalog.tools", "find"], ["server.offer", "sight"]]
    assert script.steps_upward(up, order) == ["catalog.tools.find -> server.offer.sight"]
