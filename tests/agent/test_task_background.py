"""V: a task counts what its commands in the background changed, and says what it cannot know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evercontext.agent.task_report import TaskReport
from evercontext.agent.task_undo import undo_task
from evercontext.app import EverContext
from evercontext.app.conversations import open_conversation
from evercontext.domain.event import Diff, Event
from evercontext.domain.outcome import Outcome
from evercontext.process.sandbox import available
from tests.app.test_application import configured, script

pytestmark = pytest.mark.skipif(
    not any(layer.works for layer in available()), reason="no sandbox works on this machine"
)


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"name": "run_command", "arguments": {"command": line, **more}}


def background(line: str) -> dict[str, Any]:
    return {"tool_calls": [command(line, background=True)]}


def wait_for(path: str) -> dict[str, Any]:
    return {"tool_calls": [command(f"until [ -e {path} ]; do sleep 0.05; done")]}


async def run(app: EverContext, tmp_path: Path, *turns: dict[str, Any]) -> TaskReport:
    return await app.run_task("do it", model_name=script(tmp_path, *turns))


async def test_what_it_changed_is_counted_and_undone(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    (settings.root / "a.txt").write_text("old")
    events: list[Event] = []
    async with EverContext.open(settings) as app:
        app.events.subscribe(events.append)
        line = "echo new > a.txt; touch b.txt; sleep 1000"
        report = await run(app, tmp_path, background(line), wait_for("b.txt"), {"text": "Done."})
        assert report.outcome is Outcome.DONE
        assert sorted(report.final.changed) == ["a.txt", "b.txt"]
        assert "background command 1 (echo new > a.txt" in (report.final.note or "")
        assert "was stopped at the end of the task" in (report.final.note or "")
        assert app.background is not None
        assert not any(each.running for each in app.background)
        diffs = [event.body.path for event in events if isinstance(event.body, Diff)]
        assert sorted(diffs) == ["a.txt", "b.txt"]
        await undo_task(app, report.trace_id)
    assert [path.name for path in settings.root.iterdir()] == ["a.txt"]
    assert (settings.root / "a.txt").read_text() == "old"


async def test_one_that_ended_badly_is_named(tmp_path: Path) -> None:
    async with EverContext.open(configured(tmp_path)) as app:
        line = "until [ -e go ]; do sleep 0.05; done; exit 3"
        end = "until grep -q 3 end 2>/dev/null; do sleep 0.05; done"
        report = await run(
            app,
            tmp_path,
            background(f"sh -c '{line}'; echo $? > end; exit 3"),
            {"tool_calls": [command("touch go"), command(end)]},
            *[{"tool_calls": [{"name": "command_output", "arguments": {"id": "1"}}]}] * 2,
            {"text": "Done."},
        )
    assert sorted(report.final.changed) == ["end", "go"]
    note = report.final.note or ""
    assert "with exit code 3" in note or "was stopped at the end" in note


async def test_checks_come_after_it(tmp_path: Path) -> None:
    """A file that only a command in the background made is checked, and can make it red."""
    settings = configured(tmp_path, test_cmd="test ! -e bad.txt")
    async with EverContext.open(settings) as app:
        turns = [background("touch bad.txt; sleep 1000"), wait_for("bad.txt"), {"text": "Done."}]
        report = await run(app, tmp_path, *turns, *[{"text": "no"}] * 8)
    assert report.outcome is Outcome.RED
    assert report.final.changed == ("bad.txt",)


async def test_in_a_conversation_it_goes_on_and_the_result_says_so(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    line = "touch one; until [ -e go ]; do sleep 0.05; done; touch two; sleep 1000"
    model = script(
        tmp_path,
        background(line),
        wait_for("one"),
        {"text": "It runs."},
        {"tool_calls": [command("touch go")]},
        wait_for("two"),
        {"text": "Yes."},
    )
    async with EverContext.open(settings) as app:
        talk = await open_conversation(app, model_name=model)
        first = await talk.turn("start it")
        assert first.final.changed == ("one",)
        assert "still runs: what changes from now on may be its work or yours" in (
            first.final.note or ""
        )
        (settings.root / "mine.txt").write_text("mine")
        second = await talk.turn("go on")
        assert sorted(second.final.changed) == ["go", "two"]
        await undo_task(app, second.trace_id)
        await undo_task(app, first.trace_id)
        await talk.end()
    assert [path.name for path in settings.root.iterdir()] == ["mine.txt"]
