from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from evercontext.app.models import open_picking_model
from evercontext.catalog.picker import RETRY_SECONDS, Picker
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.domain.model import Model
from evercontext.settings import Settings
from evercontext.testing import write_script

PICKS = '{"picks": [{"tool": 1, "relevance": 1, "why": "it tells the time"}]}'


def opener(settings: Settings) -> Callable[[], Awaitable[Model | None]]:
    return partial(open_picking_model, settings)


CLOCK = CatalogEntry("clock:now", "clock", "now", "The time.")


@pytest.mark.contract("T28")
async def test_the_model_is_opened_once_and_picks(tmp_path: Path) -> None:
    name = write_script(tmp_path / "script.jsonl", [{"text": PICKS}])
    async with AsyncExitStack() as stack:
        picker = Picker(opener(Settings(home=tmp_path, catalog_model=name)), stack)
        pick = await picker.get()
        assert pick is not None
        assert pick.name == name
        assert await picker.get() is pick
        found = await pick.search(["what time is it"], [CLOCK], 5, None)
        assert found[0]["explanation"] == "it tells the time"


@pytest.mark.contract("T28")
async def test_a_model_that_is_not_there_is_not_asked_for_again_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    settings = Settings(home=tmp_path, catalog_model=f"scripted:{script}")
    async with AsyncExitStack() as stack:
        patient = Picker(opener(settings), stack)
        eager = Picker(opener(settings), stack, retry_seconds=0)
        assert patient.retry_seconds == RETRY_SECONDS
        assert await patient.get() is None
        assert await eager.get() is None
        write_script(script, [{"text": PICKS}])
        assert await patient.get() is None
        assert await eager.get() is not None


async def test_the_small_model_picks_only_if_it_is_told_to(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        chosen = Settings(home=tmp_path, model_name="embedded:smollm2")
        assert await Picker(opener(chosen), stack).get() is None
