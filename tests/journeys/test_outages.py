"""A9, V10: a provider that is overloaded, cut off or not there, at every entrance.

The server asks for no wait (``Retry-After: 0``), so that nothing here waits for real.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Ended, evercontext
from tests.journeys.story import script, write
from tests.journeys.test_chat_openai import text
from tests.journeys.test_chat_openai import write as wire_write
from tests.models.wire_server import Answer, WireServer, error, wire_server

NO_OLLAMA = {"EC_OLLAMA_ENDPOINT": "http://127.0.0.1:9"}
OUTAGE = {"error": {"message": "the service is overloaded"}}


def outages(*statuses: int) -> list[Answer]:
    return [error(status, OUTAGE, retry_after="0") for status in statuses]


async def against(server: WireServer, project: Path, *arguments: str, **more: Any) -> Ended:
    env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"}
    return await asyncio.to_thread(evercontext, *arguments, cwd=project, env=env, **more)


def retries(project: Path) -> list[str]:
    """What the last trace says of retries."""
    shown = evercontext("trace", "show", "--json", cwd=project)
    assert shown.code == 0, shown.err
    events = [json.loads(line) for line in shown.out.splitlines()]
    return [event["data"]["reason"] for event in events if event["type"] == "retry"]


@pytest.mark.contract("E26", "E40")
async def test_a_run_outlasts_overload_server_errors_and_a_cut_line(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with wire_server() as server:
        cut = wire_write("a.py", "x = 1\n")
        server.will(*outages(429, 503), Answer(cut.pieces[:4], cut=True), *outages(529))
        server.will(wire_write("a.py", "x = 1\n"), *outages(500), text("Made it."))
        ended = await against(
            server, project, "run", "-t", "make a.py", "-m", "openai:gpt-4.1-nano"
        )
    assert ended.code == 0, ended.err
    assert (project / "a.py").read_text() == "x = 1\n"
    assert ended.err.count("again: ") == 5
    assert "trying again in 0.0 s (try 2 of 6)" in " ".join(ended.err.split())
    assert len(retries(project)) == 5


async def test_a_chat_tells_of_retries_and_answers(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with wire_server() as server:
        server.will(*outages(503, 503, 503), text("Here I am."))
        ended = await against(server, project, "chat", "-m", "openai:gpt-4.1-nano", stdin="hello\n")
    assert ended.code == 0, ended.err
    assert "Here I am." in ended.out
    assert ended.out.count("again: ") == 3


async def test_a_plan_is_asked_for_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    plan = json.dumps({"tasks": [{"id": "a", "title": "do a"}]})
    async with wire_server() as server:
        server.will(*outages(503, 529, 429), text(plan))
        model = ("-m", "openai:gpt-4.1-nano", "--planner", "openai:gpt-4.1-nano")
        ended = await against(server, project, "run", "--plan-only", "-t", "x", *model)
    assert ended.code == 0, ended.err
    assert "do a" in ended.out
    assert len(retries(project)) == 3


async def test_a_judge_is_asked_again(tmp_path: Path) -> None:
    document = tmp_path / "design.md"
    document.write_text("# Design\n\nIt works.\n")
    scores = dict.fromkeys(("completeness", "accuracy", "clarity", "usability"), 9)
    verdict = json.dumps({"rubric_scores": scores, "suggestions": []})
    async with wire_server() as server:
        server.will(*outages(429, 503), text(verdict))
        judge = ("evaluate", str(document), "--judge", "openai:gpt-4.1-nano")
        ended = await against(server, tmp_path, *judge)
    assert ended.code == 0, ended.err
    assert len(server.asked) == 3


@pytest.mark.contract("E26", "E40")
def test_ollama_first_and_down_is_tried_again_and_another_model_takes_over(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    other = script(tmp_path / "s", write("a.py", "x = 1\n"), {"text": "Made it."})
    ended = evercontext(
        "run",
        "-t",
        "make a.py",
        "-m",
        "ollama:m",
        "--fallback-model",
        other,
        cwd=project,
        env=NO_OLLAMA,
    )
    assert ended.code == 0, ended.err
    assert (project / "a.py").read_text() == "x = 1\n"
    reasons = retries(project)
    assert "trying again" in reasons[0]
    assert f"{other} steps in" in reasons[1]


@pytest.mark.contract("E26", "E35", "E40")
def test_ollama_alone_and_down_leaves_a_trace(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    env = {**NO_OLLAMA, "EC_MODEL_RETRIES": "1"}
    ended = evercontext("run", "-t", "make a.py", "-m", "ollama:m", cwd=project, env=env)
    assert ended.code == 75, ended.err
    assert "ollama" in ended.err
    assert len(retries(project)) == 1
    shown = evercontext("trace", "list", cwd=project)
    assert "unreachable" in shown.out
