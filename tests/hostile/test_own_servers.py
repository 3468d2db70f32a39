"""X5: a run must not work through EverContext's own servers, neither its own nor another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.app import EverContext
from evercontext.domain.tool import Caller, Door
from evercontext.errors import PolicyError
from evercontext.settings import load
from tests.cli.command import evercontext, home
from tests.journeys.story import script
from tests.server.running import Gateway, running

SECRET = "SECRET-CANARY"
CALLER = Caller("88888888-8888-4888-8888-888888888888", Door.RUN)
NAMES = (
    "127.0.0.1",
    "localhost",
    "127.0.0.7",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "x.localhost",
    "0.0.0.0",
)


def read(url: str) -> dict[str, Any]:
    body = json.dumps({"path": "secret.txt"})
    return {"name": "run.http", "arguments": {"url": url, "method": "POST", "body": body}}


def served(place: Path) -> Path:
    (place / "served").mkdir()
    (place / "served" / "secret.txt").write_text(SECRET)
    return place / "served"


def traces() -> str:
    return "".join(file.read_text() for file in (home() / "traces").glob("*.jsonl"))


def refusals(gateway: Gateway) -> str:
    shown = traces()
    assert SECRET not in shown
    assert (gateway.root / "secret.txt").read_text() == SECRET
    return shown


@pytest.mark.slow
def test_a_run_cannot_use_a_server_of_another_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    # A project that says its ports are others does not open the real ones.
    (project / "evercontext.toml").write_text("port = 1\nrouter_port = 1\nevaluator_port = 1\n")
    with running(served(tmp_path), home()) as gateway:
        calls = [read(f"http://{name}:{gateway.port}/read_file") for name in NAMES]
        turns = [{"tool_calls": [call]} for call in calls]
        model = script(tmp_path / "s", *turns, {"text": "done"})
        evercontext("run", "--task", "look around", "-m", model, "--yes", cwd=project)
        shown = refusals(gateway)
        assert shown.count(f"port {gateway.port} is one of EverContext's own") >= len(NAMES) - 1
        # What the run asked for itself is written down, too; the server was asked for nothing.
        assert {line["method"] for line in gateway.audit()} == {"run.http"}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_server_that_started_after_the_run_is_refused_too(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "project").mkdir()
    async with EverContext.open(load({"root": str(tmp_path / "project")})) as app:
        with running(served(tmp_path), home()) as gateway:
            call = read(f"http://{name}:{gateway.port}/read_file")
            result = await app.toolbox.call("run.http", call["arguments"], CALLER)
            assert isinstance(result.error, PolicyError), result.text
            # Of a server that was killed only its note is left, and that one counts for nothing.
            gateway.process.kill()
            gateway.process.wait()
            result = await app.toolbox.call("run.http", call["arguments"], CALLER)
            assert "one of EverContext's own" not in result.text


def test_a_server_of_another_home_refuses_what_a_model_sends(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with running(served(tmp_path), tmp_path / "another-home") as gateway:
        call = read(f"http://127.0.0.1:{gateway.port}/read_file")
        model = script(tmp_path / "s", {"tool_calls": [call]}, {"text": "done"})
        evercontext("run", "--task", "look around", "-m", model, "--yes", cwd=project)
        refusals(gateway)
        assert [line["status"] for line in gateway.audit()] == [403]


@pytest.mark.slow
def test_a_sandboxed_command_cannot_reach_a_server(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with running(served(tmp_path), home()) as gateway:
        code = f"import socket; socket.create_connection(('127.0.0.1', {gateway.port}), 5)"
        command = {"command": f'python3 -c "{code}" && echo REACHED-{2 * 21}'}
        turns = [{"tool_calls": [{"name": "run_command", "arguments": command}]}]
        model = script(tmp_path / "s", *turns, {"text": "done"})
        evercontext("run", "--task", "look around", "-m", model, "--yes", cwd=project)
        results = [
            event["data"]["text"]
            for event in map(json.loads, traces().splitlines())
            if event["type"] == "tool_result"
        ]
        assert results
        assert not any("\nREACHED-42" in text for text in results)
