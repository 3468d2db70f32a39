from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.app.preview import preview
from evercontext.testing import house


@pytest.mark.contract("R9", "R54")
async def test_a_preview_names_every_layer_and_asks_no_model(tmp_path: Path) -> None:
    script = tmp_path / "s.jsonl"
    script.write_text('{"error": "model_unavailable"}\n')
    async with house(tmp_path) as app:
        bare = await preview(app, "Say hi", f"scripted:{script}")
        await app.memory.memories.save_memory("Say hi in Welsh", project=app.memory.project)
        full = await preview(app, "Say hi", f"scripted:{script}")
    assert [layer.name for layer in bare.layers] == ["system", "tools", "task"]
    assert [layer.name for layer in full.layers] == ["system", "tools", "memories", "task"]
    assert "recall" in full.layers[1].text
    assert full.tokens == bare.tokens + full.layers[2].tokens
    assert 0 < full.tokens < full.window
