"""Our tools over stdin and stdout: the handshake at once, everything else when it is open."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT, evercontext, home

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}}
HEAVY = ("mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "numpy", "evercontext.app")


def talk(folder: Path, *requests: dict[str, Any], **env: str) -> tuple[int, list[dict[str, Any]]]:
    lines = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n"
        for number, request in enumerate(requests, start=1)
    )
    ended = evercontext("mcp", cwd=folder, stdin=lines, env=env)
    return ended.code, [json.loads(line) for line in ended.out.splitlines()]


@pytest.mark.contract("L3", "L4")
def test_requests_wait_for_the_project_and_are_answered_at_the_end_of_input(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    code, answers = talk(
        tmp_path,
        {"method": "initialize", "params": HELLO},
        {"method": "tools/list"},
        {"method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "a.txt"}}},
        {
            "method": "tools/call",
            "params": {"name": "read_file", "arguments": {"path": "none.txt"}},
        },
        {"method": "tools/call", "params": {"name": 5}},
        {"method": "no/such"},
    )
    assert code == 0
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[1]["result"]["serverInfo"]["name"] == "evercontext"
    tool = next(tool for tool in by_id[2]["result"]["tools"] if tool["name"] == "read_file")
    assert tool["annotations"]["readOnlyHint"] is True
    assert by_id[3]["result"]["content"] == [{"type": "text", "text": "hello\n"}]
    assert "structuredContent" not in by_id[3]["result"]
    assert (by_id[4]["result"]["isError"], by_id[4]["result"]["structuredContent"]["status"]) == (
        True,
        404,
    )
    assert [by_id[number]["error"]["code"] for number in (5, 6)] == [-32602, -32601]


@pytest.mark.contract("L3")
def test_a_call_before_the_handshake_is_refused(tmp_path: Path) -> None:
    _, answers = talk(tmp_path, {"method": "tools/list"}, {"method": "ping"})
    assert answers[0]["error"]["code"] == -32002
    assert answers[1]["result"] == {}


def test_a_project_that_cannot_be_opened_is_said_to_the_client_and_the_user(tmp_path: Path) -> None:
    (home() / "memory.db").mkdir(parents=True)
    lines = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    more = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    ended = evercontext("mcp", cwd=tmp_path, stdin=f"{lines}\n{more}\n")
    assert ended.code != 0
    assert "memory.db" in ended.err
    greeting, refusal = map(json.loads, ended.out.splitlines())
    assert greeting["result"]["serverInfo"]["name"] == "evercontext"
    assert "memory.db" in refusal["error"]["message"]


@pytest.mark.parametrize("more", [[], ["--router"]])
def test_a_project_with_broken_settings_answers_the_handshake_first(
    tmp_path: Path, more: list[str]
) -> None:
    """The client shows the error of a call; of a server that is not there it shows nothing."""
    (tmp_path / "evercontext.toml").write_text("= broken\n")
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    ended = evercontext("mcp", *more, cwd=tmp_path, stdin=lines)
    assert ended.code == 1
    greeting, refusal = map(json.loads, ended.out.splitlines())
    assert greeting["result"]["serverInfo"]["name"] == "evercontext"
    assert "evercontext.toml" in refusal["error"]["message"]
    assert "evercontext.toml" in ended.err


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_the_handshake_loads_nothing_heavy(tmp_path: Path) -> None:
    """P14: a client's first turn went without our tools, because the answer took a second."""
    code = (
        "import asyncio, sys\n"
        "from evercontext.cli import mcp\n"
        "from evercontext.server import stdio_tools\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    python = str(Path(EVERCONTEXT).with_name("python"))
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout == "[]\n"
