from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import evercontext
from tests.journeys.story import script


@pytest.mark.contract("N24", "N34", "N38")
def test_past_conversations_are_found_shown_exported_and_deleted(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
    model = script(tmp_path / "s.jsonl", {"text": "直しました。"})
    evercontext("chat", "-m", model, cwd=here, stdin="認証の不具合を直して\n")
    (listed,) = json.loads(evercontext("sessions", "list", "--json", cwd=here).out)
    assert listed["title"] == "認証の不具合を直して"
    assert listed["ended_at"]
    assert json.loads(evercontext("sessions", "list", "--json", cwd=there).out) == []
    (hit, _) = json.loads(evercontext("sessions", "search", "直し", "--json", cwd=here).out)
    assert hit["session_id"] == listed["id"]
    assert evercontext("sessions", "search", "直し", cwd=there).code == 1
    shown = evercontext("sessions", "show", "last", cwd=here)
    assert "直しました。" in shown.out
    evercontext("sessions", "export", listed["id"], "-o", "out.md", cwd=here)
    assert (here / "out.md").read_text() == shown.out
    again = evercontext("sessions", "export", listed["id"], "-o", "out.md", cwd=here)
    assert again.code == 1
    assert "exists" in again.err
    assert evercontext("sessions", "delete", listed["id"], cwd=here).code == 5
    assert evercontext("sessions", "delete", listed["id"][:10], "--yes", cwd=here).code == 0
    assert evercontext("sessions", "show", "last", cwd=here).code == 64
