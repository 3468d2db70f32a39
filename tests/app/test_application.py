from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.domain.event import Event, Plan, Task
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import ConfigError, ModelUnknown
from evercontext.settings import Settings


def script(tmp_path: Path, *turns: dict[str, Any], name: str = "script.jsonl") -> str:
    path = tmp_path / name
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    return f"scripted:{path}"


def configured(tmp_path: Path, **flags: Any) -> Settings:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    environment = {"EC_HOME": str(tmp_path / "home")}
    return sources.load({"root": str(root), **flags}, environment=environment, cwd=tmp_path)


def write(path: str, content: str = "x\n") -> dict[str, Any]:
    arguments = {"path": path, "content": content, "mode": "overwrite"}
    return {"tool_calls": [{"name": "write_file", "arguments": arguments}]}


@pytest.mark.contract("E3", "E44", "E55")
async def test_a_task_writes_through_the_real_gateway_twice(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    for _ in range(2):
        model = script(tmp_path, write("app/main.py", "print('Hello World')\n"), {"text": "done"})
        async with EverContext.open(settings) as app:
            report = await app.run_task("app に Hello World を作成", model_name=model)
        assert report.outcome is Outcome.DONE
    assert (settings.root / "app/main.py").read_text() == "print('Hello World')\n"


@pytest.mark.contract("E34")
async def test_a_dry_run_leaves_the_project_untouched(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    model = script(tmp_path, write("a.py"), {"text": "done"})
    async with EverContext.open(settings) as app:
        report = await app.run_task("x", mode=Mode.DRY_RUN, model_name=model)
    assert report.outcome is Outcome.DONE
    assert list(settings.root.iterdir()) == []


async def test_the_agent_is_told_the_tree_and_the_projects_instructions(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    (settings.root / "AGENTS.md").write_text("Use tabs.", encoding="utf-8")
    (settings.root / "src").mkdir()
    (settings.root / "src" / "main.py").write_text("", encoding="utf-8")
    (settings.root / ".env").write_text("SECRET=1", encoding="utf-8")
    async with EverContext.open(settings) as app:
        told = await app.surroundings(Caller("t", Door.RUN))
    assert told.root_name == "project"
    assert "src/main.py" in told.tree
    assert ".env" not in told.tree
    assert told.instructions == "Use tabs."


@pytest.mark.contract("E1", "E8", "E45")
async def test_a_planner_plans_and_another_model_executes(tmp_path: Path) -> None:
    tasks = [{"id": "b", "title": "second", "depends_on": ["a"]}, {"id": "a", "title": "first"}]
    plan = {"version": 1, "tasks": tasks}
    planner = script(tmp_path, {"text": json.dumps(plan)}, name="planner.jsonl")
    model = script(tmp_path, write("a.txt"), {"text": "a"}, write("b.txt"), {"text": "b"})
    heard: list[Event] = []
    async with EverContext.open(configured(tmp_path, planner=planner)) as app:
        app.events.subscribe(heard.append)
        report = await app.run_task("two files", model_name=model)
    assert report.outcome is Outcome.DONE
    assert report.final.changed == ("a.txt", "b.txt")
    plans = [event.body for event in heard if isinstance(event.body, Plan)]
    assert plans[0].source == planner


async def test_traces_are_indexed_and_the_index_can_be_rebuilt(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    async with EverContext.open(settings) as app:
        report = await app.run_task("say hi", model_name=script(tmp_path, {"text": "hi"}))
    settings.database.unlink()
    async with EverContext.open(settings) as app:
        assert await app.traces.recent() == []
        assert await app.traces.rebuild() == 1
        (row,) = await app.traces.recent()
    assert (row["status"], row["title"]) == ("done", "say hi")
    segment = settings.traces / row["segment"]
    assert report.trace_id in segment.read_text(encoding="utf-8")


@pytest.mark.case(140)
@pytest.mark.parametrize("root", ["/", "~"])
async def test_a_root_that_is_far_too_wide_is_refused(tmp_path: Path, root: str) -> None:
    environment = {"EC_HOME": str(tmp_path / "home")}
    settings = sources.load({"root": root}, environment=environment, cwd=tmp_path)
    with pytest.raises(ConfigError, match="--allow-wide-root"):
        async with EverContext.open(settings):
            pass


async def test_a_root_that_is_not_there_is_refused_before_anything_is_made(
    tmp_path: Path,
) -> None:
    settings = configured(tmp_path, root=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="not a directory"):
        async with EverContext.open(settings):
            pass
    assert not settings.home.exists()


async def test_a_home_that_cannot_be_made_names_its_variable(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file in the way")
    with pytest.raises(ConfigError, match="EC_HOME"):
        async with EverContext.open(configured(tmp_path)):
            pass


async def test_an_unknown_model_ends_before_a_trace_begins(tmp_path: Path) -> None:
    heard: list[Event] = []
    async with EverContext.open(configured(tmp_path)) as app:
        app.events.subscribe(heard.append)
        with pytest.raises(ModelUnknown):
            await app.run_task("x", model_name="scripted:/nowhere.jsonl")
    assert not [event for event in heard if isinstance(event.body, Task)]


@pytest.mark.contract("R52")
async def test_what_replies_teach_about_tokens_is_kept(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    usage = {"input_tokens": 4000, "output_tokens": 5}
    model = script(tmp_path, {"text": "hi", "usage": usage})
    async with EverContext.open(settings) as app:
        await app.run_task("x", model_name=model)
        row = await app.store.fetch_one("SELECT value FROM kept WHERE key LIKE 'tokens:%'")
    assert row is not None
    assert json.loads(row["value"])["seen"] == 1
