"""V13: every entrance writes the same audit records into one log (E25)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acp import spawn_agent_process, text_block

from evercontext.testing import tiny_repository
from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.journeys.story import call, script
from tests.server.running import running
from tests.server.test_acp import Editor

FIELDS = {"method", "path", "size", "status", "door"}
TEXT = "x = 2\n"
CALLS = [
    call("write_file", path="new.py", content=TEXT, mode="overwrite"),
    call("read_file", path="../etc/passwd"),
    call("read_file", path="missing.py"),
]
LINES = [
    ("write_file", "new.py", len(TEXT), 200),
    ("read_file", "../etc/passwd", 0, 400),
    ("read_file", "missing.py", 0, 404),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tiny_repository(tmp_path / "project", {"a.py": "x = 1\n"})


def audits(folder: Path | None = None) -> list[dict[str, Any]]:
    """The audit records of a home folder, oldest first, each with its trace id."""
    found = []
    for segment in sorted(((folder or home()) / "traces").glob("*.jsonl")):
        for line in segment.read_text("utf-8").splitlines():
            if (event := json.loads(line))["type"] == "audit":
                found.append({"trace_id": event["trace_id"], **event["data"]})
    return found


def told(lines: list[dict[str, Any]]) -> list[tuple[str, str, int, int]]:
    """What records say; that each has a trace and every field of the contract is checked."""
    assert all(line["trace_id"] and line.keys() >= FIELDS for line in lines)
    assert len({line["trace_id"] for line in lines}) == 1
    return [(line["method"], line["path"], line["size"], line["status"]) for line in lines]


def model(tmp_path: Path) -> str:
    turns = ({"tool_calls": [one]} for one in CALLS)
    return script(tmp_path / "s.jsonl", *turns, {"text": "Done."})


@pytest.mark.contract("E25")
@pytest.mark.slow
def test_a_run_leaves_the_records_that_a_gateway_leaves(project: Path, tmp_path: Path) -> None:
    evercontext("run", "-t", "x", "-m", model(tmp_path), cwd=project)
    lines = audits()
    assert told(lines) == LINES
    assert {line["door"] for line in lines} == {"run"}
    assert TEXT.strip() not in json.dumps(lines)
    # The same calls over HTTP: the same paths, sizes and statuses.
    with running(project, tmp_path / "served") as gateway:
        trace = lines[0]["trace_id"]
        for one in CALLS:
            gateway.post(one["name"], one["arguments"], x_trace_id=trace)
        served = gateway.audit()
    assert [entry[1:] for entry in told(served)] == [entry[1:] for entry in LINES]
    # A person who looks at the trace is not told everything twice.
    assert "audit" not in evercontext("trace", "show", trace, cwd=project).out


@pytest.mark.contract("E25")
def test_a_dry_run_records_no_write_that_was_not_made(project: Path, tmp_path: Path) -> None:
    evercontext("run", "-t", "x", "--dry-run", "-m", model(tmp_path), cwd=project)
    assert told(audits()) == LINES[1:]


@pytest.mark.contract("E25", "E33")
def test_files_behind_a_gateway_have_their_records_there_alone(
    project: Path, tmp_path: Path
) -> None:
    with running(project, tmp_path / "served") as gateway:
        there = {"EC_MCP_URL": gateway.url}
        evercontext("run", "-t", "x", "-m", model(tmp_path), cwd=project, env=there)
        served = gateway.audit()
    writes = [line for line in served if line["path"] == "new.py" and "write" in line["method"]]
    assert len(writes) == 1
    assert not [line for line in audits() if line["method"] == "write_file"]


@pytest.mark.contract("E25", "E54")
@pytest.mark.slow
def test_what_an_undo_restores_removes_and_leaves_alone_is_recorded(
    project: Path, tmp_path: Path
) -> None:
    paths = ("a.py", "new.py", "mine.py")
    writes = [call("write_file", path=path, content=TEXT, mode="overwrite") for path in paths]
    reads = call("read_file", path="a.py")
    turns = ({"tool_calls": [one]} for one in (reads, *writes))
    used = script(tmp_path / "w.jsonl", *turns, {"text": "Done."})
    assert evercontext("run", "-t", "x", "-m", used, "--no-auto-test", cwd=project).code == 0
    (project / "mine.py").write_text("mine\n")
    assert evercontext("undo", "--dry-run", cwd=project).code == 0
    before = len(audits())
    assert evercontext("undo", cwd=project).code == 0
    lines = audits()[before:]
    assert told(lines) == [
        ("undo", "a.py", len("x = 1\n"), 200),
        ("undo", "new.py", 0, 200),
        ("undo", "mine.py", 0, 409),
    ]


@pytest.mark.contract("E25", "E54")
def test_a_rollback_is_recorded_below_its_task(project: Path, tmp_path: Path) -> None:
    used = script(tmp_path / "w.jsonl", {"tool_calls": [CALLS[0]]}, {"error": "model_refused"})
    asked = ("run", "-t", "x", "-m", used, "--no-auto-test", "--rollback-on-failure")
    assert evercontext(*asked, cwd=project).code != 0
    assert told(audits())[-1] == ("undo", "new.py", 0, 200)


@pytest.mark.contract("E25")
def test_the_chat_leaves_them_too(project: Path, tmp_path: Path) -> None:
    ended = evercontext("chat", "-m", model(tmp_path), "--yes", cwd=project, stdin="make it\n")
    assert ended.code is not None
    lines = audits()
    assert told(lines) == LINES
    assert {line["door"] for line in lines} == {"chat"}


@pytest.mark.contract("E25")
def test_so_does_our_mcp_server(project: Path) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": CALLS[0]},
    ]
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    ended = evercontext("mcp", cwd=project, stdin=stdin)
    assert '"id":2' in ended.out.replace(" ", ""), ended.err
    lines = audits()
    assert told(lines) == LINES[:1]
    assert lines[0]["door"] == "mcp"


@pytest.mark.contract("E25")
async def test_so_does_an_editor(project: Path, tmp_path: Path) -> None:
    editor = Editor("once")
    command = (EVERCONTEXT, "acp", "-m", model(tmp_path))
    async with spawn_agent_process(editor, *command, cwd=project) as (agent, _):  # type: ignore[arg-type]
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(project), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[text_block("make it")])
    assert told(audits()) == LINES
