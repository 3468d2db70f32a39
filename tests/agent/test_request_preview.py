from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.app.models import open_model
from evercontext.errors import ModelAuthFailed
from evercontext.testing import application


@pytest.mark.contract("R9", "R54")
async def test_a_preview_names_every_layer_and_asks_no_model(tmp_path: Path) -> None:
    script = tmp_path / "s.jsonl"
    script.write_text('{"error": "model_unavailable"}\n')
    async with application(tmp_path) as app:
        bare = await app.preview("Say hi", f"scripted:{script}")
        await app.memory.memories.save_memory("Say hi in Welsh", project=app.memory.project)
        full = await app.preview("Say hi", f"scripted:{script}")
    assert [layer.name for layer in bare.layers] == ["system", "tools", "task"]
    assert [layer.name for layer in full.layers] == ["system", "tools", "memories", "task"]
    assert "recall" in full.layers[1].text
    assert full.tokens == bare.tokens + full.layers[2].tokens
    assert 0 < full.tokens < full.window


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "gpt-4.1-nano"])
async def test_no_key_is_needed_where_nothing_is_sent(tmp_path: Path, model: str) -> None:
    async with application(tmp_path) as app:
        shown = await app.preview("Say hi", model)
        assert shown.model.endswith(f":{model}")
        assert (0 < shown.tokens < shown.window, shown.over) == (True, 0)
        with pytest.raises(ModelAuthFailed):
            await open_model(app.settings, model)


async def test_a_tiny_model_is_shown_what_it_would_be_sent_and_no_more(tmp_path: Path) -> None:
    async with application(tmp_path) as app:
        await app.memory.memories.save_memory("Say hi in Welsh", project=app.memory.project)
        shown = await app.preview("Say hi", "embedded:smollm2")
    assert [layer.name for layer in shown.layers] == ["system", "tools", "task"]
    assert shown.layers[1].text == "list_files, read_file, write_file"
    assert shown.over == 0
