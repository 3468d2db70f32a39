from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import postgres
from tests.cli.command import evercontext
from tests.journeys.story import script


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_users_of_one_database_and_one_path_have_their_own(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    shared = {"EC_DATABASE_URL": postgres.new_database()}
    ann, bob = ({**shared, "EC_USER": who} for who in ("ann", "bob"))
    model = script(tmp_path / "s.jsonl", {"text": "herons"})
    evercontext("chat", "-m", model, cwd=place, env=ann, stdin="which birds?\n")
    (own,) = json.loads(evercontext("sessions", "list", "--json", cwd=place, env=ann).out)
    assert own["user_id"] == "ann"
    assert json.loads(evercontext("sessions", "list", "--json", cwd=place, env=bob).out) == []
    assert evercontext("sessions", "search", "herons", cwd=place, env=ann).code == 0
    assert evercontext("sessions", "search", "herons", cwd=place, env=bob).code == 1
    for words in (("show", own["id"]), ("delete", own["id"], "--yes")):
        assert evercontext("sessions", *words, cwd=place, env=bob).code == 64
    resumed = evercontext("chat", "-r", own["id"], "-m", model, cwd=place, env=bob, stdin="and?\n")
    assert (resumed.code, "herons" in resumed.out) == (64, False)
