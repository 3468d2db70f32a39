"""V12: what is remembered of a task goes with the task when it is taken back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.process.sandbox import available
from evercontext.testing import tiny_repository
from tests.cli.command import Ended, evercontext
from tests.journeys.person import Person
from tests.journeys.story import call, script, write
from tests.models.wire_server import Answer, sse, wire_server

TASK = "Add the lighthouse beacon to beacon.py"
DONE = {"text": "The beacon is there."}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "project", {"a.py": "x = 1\n"})


def run(project: Path, model: str, *more: str, **env: str) -> Ended:
    arguments = ("run", "-t", TASK, "-m", model, "--json", *more)
    return evercontext(*arguments, cwd=project, env=env)


def worked(project: Path) -> str:
    """A task that is done, with something that the agent remembered of it; its trace."""
    remembered = {"tool_calls": [call("remember", content="The beacon blinks in beacon.py.")]}
    turns = (write("beacon.py", "on = True\n", "create"), remembered, DONE)
    ended = run(project, script(project.parent / "s.jsonl", *turns), "--yes")
    assert ended.code == 0, ended.err
    trace: str = json.loads(ended.out)["trace_id"]
    return trace


def remembered(project: Path) -> list[str]:
    ended = evercontext("memory", "list", "--json", cwd=project)
    return [memory["content"] for memory in json.loads(ended.out)]


async def asked(project: Path) -> str:
    """What a model is sent for a task that is near the one before."""
    piece: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "model": "gpt-x"}
    end = {"index": 0, "delta": {"content": "Nothing to do."}, "finish_reason": "stop"}
    async with wire_server() as server:
        server.will(Answer(sse({**piece, "choices": [end]}, done=True)))
        env = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": f"{server.url}/v1"}
        await asyncio.to_thread(run, project, "openai:gpt-4.1-mini", **env)
    return json.dumps(server.asked[0].body, ensure_ascii=False)


@pytest.mark.contract("E54")
@pytest.mark.slow
async def test_undone_work_is_in_no_later_prompt_until_it_is_brought_back(project: Path) -> None:
    trace = worked(project)
    assert len(remembered(project)) == 2
    assert "Outcome: done" in await asked(project)
    undone = evercontext("undo", trace, "--json", cwd=project)
    told = json.loads(undone.out)
    assert told["removed"] == ["beacon.py"], undone.err
    assert remembered(project) == []
    sent = await asked(project)
    assert "Outcome: done" not in sent
    assert "blinks" not in sent
    again = evercontext("undo", told["trace_id"], cwd=project)
    assert again.code == 0, again.err
    assert "2 memories of this work" in again.out
    assert len(remembered(project)) == 2
    assert "Outcome: done" in await asked(project)


@pytest.mark.slow
def test_what_a_taken_back_memory_had_replaced_is_true_again(project: Path) -> None:
    evercontext("memory", "add", "The beacon is in tower.py.", cwd=project)
    listed = json.loads(evercontext("memory", "list", "--json", cwd=project).out)
    newer = call("remember", content="The beacon is in beacon.py.", supersedes=listed[0]["id"])
    turns = (write("beacon.py", "on = True\n", "create"), {"tool_calls": [newer]}, DONE)
    run(project, script(project.parent / "s.jsonl", *turns), "--yes")
    assert "The beacon is in tower.py." not in remembered(project)
    evercontext("undo", cwd=project)
    assert remembered(project) == ["The beacon is in tower.py."]


def test_rolled_back_work_leaves_no_memory(project: Path) -> None:
    remembered_ = {"tool_calls": [call("remember", content="The beacon blinks in beacon.py.")]}
    failing = {"tool_calls": [call("move_file", source="no.py", destination="b.py")]}
    turns = (write("beacon.py", "on = True\n", "create"), remembered_, failing, DONE)
    model = script(project.parent / "s.jsonl", *turns)
    ended = run(project, model, "--yes", "--rollback-on-failure")
    assert json.loads(ended.out)["files_rolled_back"] == ["beacon.py"], (ended.out, ended.err)
    assert remembered(project) == []


def test_the_undo_of_a_chat_takes_its_memories_along(project: Path) -> None:
    model = script(project.parent / "s.jsonl", write("beacon.py", "on = True\n", "create"), DONE)
    with Person(project, "chat", "-m", model, "--yes") as person:
        person.sees("/help")
        person.says(TASK)
        person.sees("The beacon is there.")
        person.says("/undo")
        person.sees("removed  beacon.py", "1 memory of this work")
        assert person.leaves() == 0
    assert remembered(project) == []


@pytest.mark.skipif(
    not any(finding.works for finding in available()), reason="no sandbox works on this machine"
)
@pytest.mark.slow
def test_a_directory_that_was_put_to_use_is_not_taken_back(project: Path) -> None:
    """The memories of the task that made it stay with the undo of another, and go with its own."""
    (project / "src").mkdir()
    turns: list[Any] = []
    for folder in ("docs", "notes"):
        noted = call("remember", content=f"The {folder} are below {folder}.")
        turns += [{"tool_calls": [call("run_command", command=f"mkdir src/{folder}"), noted]}, DONE]
    traces = []
    for number in (0, 2):
        model = script(project.parent / f"{number}.jsonl", *turns[number : number + 2])
        asked = ("run", "-t", f"Step {number}", "-m", model, "--yes", "--json")
        ended = evercontext(*asked, cwd=project)
        assert ended.code == 0, ended.err
        traces.append(json.loads(ended.out)["trace_id"])
    worked(project)
    (project / "src/docs/mine.md").write_text("mine\n")
    assert evercontext("undo", cwd=project).code == 0
    assert not (project / "beacon.py").exists()
    assert {"The docs are below docs.", "The notes are below notes."} <= set(remembered(project))
    assert "1 memory of this work" in evercontext("undo", traces[1], cwd=project).out
    left = remembered(project)
    assert "The docs are below docs." in left
    assert "The notes are below notes." not in left
