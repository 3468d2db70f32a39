from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.domain.message import user
from evercontext.domain.model import Model, ModelInfo, Request, complete
from evercontext.errors import ModelUnavailable, ModelUnknown
from evercontext.models.lazy_model import LazyModel, open_or_defer
from evercontext.testing import scripted_model

ASK = Request([user("go")])
ASSUMED = ModelInfo("ollama:m", 4_096)


async def test_a_model_that_was_away_is_opened_by_its_first_request(tmp_path: Path) -> None:
    """V10: until then its name is known, and asking it is an outage like any other."""
    opened = 0

    async def open_model() -> Model:
        nonlocal opened
        opened += 1
        if opened < 3:
            raise ModelUnavailable("down")
        return scripted_model(tmp_path / "s", [{"text": "up"}, {"text": "still up"}])

    model = await open_or_defer(open_model, ASSUMED)
    assert isinstance(model, LazyModel)
    assert model.info is ASSUMED
    with pytest.raises(ModelUnavailable):
        await complete(model, ASK)
    assert (await complete(model, ASK)).text == "up"
    assert (await complete(model, ASK)).text == "still up"
    assert (opened, model.info.name.startswith("scripted:")) == (3, True)
    await model.aclose()


async def test_what_is_wrong_for_good_is_told_at_once() -> None:
    async def open_model() -> Model:
        raise ModelUnknown("no such model")

    with pytest.raises(ModelUnknown):
        await open_or_defer(open_model, ASSUMED)
