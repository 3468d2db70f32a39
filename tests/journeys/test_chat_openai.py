"""The chat against a server that speaks OpenAI's wire format."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.journeys.model_server import ModelServer, model_server
from tests.models.wire_server import Answer, sse, wire_server


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4.1-nano",
        "choices": [choice],
    }


def text(*pieces: str) -> Answer:
    parts = [chunk({"content": piece}) for piece in pieces]
    return Answer(sse(*parts, chunk({}, "stop"), done=True))


def write(path: str, content: str) -> Answer:
    # The arguments come in fragments, with a raw line break inside a string, as some models do.
    raw = json.dumps({"path": path, "content": content}, ensure_ascii=False).replace("\\n", "\n")
    function = {"name": "writeFile", "arguments": ""}
    opened = {"index": 0, "id": "call_1", "type": "function", "function": function}
    parts = [chunk({"tool_calls": [opened]})]
    parts += [
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": raw[n : n + 9]}}]})
        for n in range(0, len(raw), 9)
    ]
    return Answer(sse(*parts, chunk({}, "tool_calls"), done=True))


@pytest.mark.contract("N5", "N12", "N13", "N22", "N30")
async def test_streaming_calls_and_a_switch_that_keeps_the_history(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with wire_server() as server:
        server.will(write("a.py", "x = 1\ny = 2\n"), text("作りま", "した。"), text("It was a.py."))
        said = "make a.py\nmodel gpt-4.1-mini\nwhat did you make?\n"
        child = await asyncio.create_subprocess_exec(
            EVERCONTEXT,
            "chat",
            "--yes",
            cwd=project,
            env={**os.environ, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(child.communicate(said.encode()), 90)
    shown = out.decode()
    assert child.returncode == 0, shown
    assert (project / "a.py").read_text() == "x = 1\ny = 2\n"
    assert "作りました。" in shown
    assert "It was a.py." in shown
    asked = [one for one in server.asked if one.path.endswith("/chat/completions")]
    assert [one.body["model"] for one in asked] == [
        "gpt-6.1-terra",
        "gpt-6.1-terra",
        "gpt-4.1-mini",
    ]
    assert asked[0].headers["authorization"] == "Bearer sk-test"
    roles = [message["role"] for message in asked[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "sk-test" not in shown


@pytest.mark.contract("N10", "N11", "N26")
async def test_what_the_model_is_told_of_a_new_project(tmp_path: Path) -> None:
    """A4: proved by what is sent: its name, git's status, and to ask before it builds."""
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "trunk", project], check=True)
    (project / "README.md").write_text("# Notes\n")
    async with wire_server() as server:
        server.will(text("What is it for?"), text("Then I begin."))
        child = await asyncio.create_subprocess_exec(
            EVERCONTEXT,
            "chat",
            "--yes",
            cwd=project,
            env={**os.environ, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(child.communicate(b"build a tool\nfor notes\n"), 90)
    assert child.returncode == 0, out.decode()
    requests = [one for one in server.asked if one.path.endswith("/chat/completions")]
    prompts = [request.body["messages"][0]["content"] for request in requests]
    assert "You are nebula" in prompts[0]
    assert "Git status when the work began:\n## No commits yet on trunk\n?? README.md" in prompts[0]
    assert "Before you create a file, ask the user" in prompts[0]
    assert prompts[0] == prompts[1], "the prompt of a session stays, so that it can be cached"


@pytest.mark.contract("N13", "N38")
@pytest.mark.slow
def test_a_session_goes_on_with_the_model_that_was_chosen_for_it(tmp_path: Path) -> None:
    """A5: chosen in the chat or with -m, until another one is named."""
    project = tmp_path / "project"
    project.mkdir()

    def chat(model: ModelServer, said: str, *options: str) -> None:
        ended = evercontext("chat", *options, cwd=project, stdin=said, env=model.settings)
        assert ended.code == 0, ended.err

    with model_server() as model:
        chat(model, "hello\nmodel gpt-4.1\nand you?\n")
        chat(model, "go on\n", "-c")
        chat(model, "go on\n", "-c", "-m", "gpt-4.1-mini")
        chat(model, "go on\n", "-c")
    assert [body["model"].removeprefix("gpt-") for body in model.asked] == [
        "6.1-terra",
        "4.1",
        "4.1",
        "4.1-mini",
        "4.1-mini",
    ]
    with closing(sqlite3.connect(home() / "memory.db")) as database:
        assert database.execute("SELECT model_used FROM sessions").fetchall() == [("gpt-4.1-mini",)]
