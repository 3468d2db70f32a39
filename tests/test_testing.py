from __future__ import annotations

from pathlib import Path

from evercontext import testing
from evercontext.domain.message import user
from evercontext.domain.model import Request, complete
from evercontext.domain.outcome import Outcome


async def test_a_whole_house_for_a_test(tmp_path: Path) -> None:
    name = testing.write_script(tmp_path / "script.jsonl", [{"text": "こんにちは"}])
    async with testing.house(tmp_path) as app:
        report = await app.run_task("say hello", model_name=name)
    assert (report.outcome, report.text) == (Outcome.DONE, "こんにちは")


async def test_a_store_in_memory_has_every_table() -> None:
    async with testing.memory_store() as store:
        assert await store.fetch_all("SELECT * FROM sessions") == []


async def test_a_scripted_model_plays_its_turns(tmp_path: Path) -> None:
    model = testing.scripted_model(tmp_path / "s.jsonl", [{"text": "one"}, {"text": "two"}])
    asked = Request([user("?")])
    assert [(await complete(model, asked)).text for _ in range(2)] == ["one", "two"]


def test_a_tiny_repository_has_one_commit(tmp_path: Path) -> None:
    place = testing.tiny_repository(tmp_path / "repo", {"src/a.py": "x = 1\n"})
    assert testing.git(place, "log", "--format=%s").strip() == "first"
    assert testing.git(place, "status", "--porcelain") == ""
