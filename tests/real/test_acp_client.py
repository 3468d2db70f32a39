"""P13: acpx drives our agent over the Agent Client Protocol, as an editor does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.world import ODD_SERVER
from tests.cli.command import EVERCONTEXT, Ended
from tests.journeys.story import call, script
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import ACP
from tests.real.users import environment

WRITE = {"tool_calls": [call("writeFile", path="a.py", content="x\n")]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def acpx(installed: Installed, model: str, project: Path, *words: str) -> Ended:
    """Run acpx once; what it keeps running between prompts ends after a second."""
    agent = ["--agent", f"{EVERCONTEXT} acp -m {model}", "--cwd", str(project), "--ttl", "1"]
    done = subprocess.run(
        [installed.command, *agent, *words],
        env={**os.environ, **environment(installed)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def messages(ended: Ended) -> list[dict[str, Any]]:
    """Return what went over the wire, both ways."""
    assert ended.code == 0, ended.out + ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def of_method(sent: list[dict[str, Any]], method: str) -> list[dict[str, Any]]:
    """Return the parameters of the messages of one method."""
    return [each["params"] for each in sent if each.get("method") == method]


@real(ACP, "acpx")
def test_a_file_is_written_once_the_client_allowed_it(
    installed: Installed, project: Path, tmp_path: Path
) -> None:
    """The question is about the call that was announced; its diff has an absolute path."""
    model = script(tmp_path / "s.jsonl", WRITE, {"text": "Done."})
    words = ("--approve-all", "--format", "json", "exec", "make a")
    sent = messages(acpx(installed, model, project, *words))
    assert (project / "a.py").read_text() == "x\n"
    updates = [each["update"] for each in of_method(sent, "session/update")]
    asked = of_method(sent, "session/request_permission")[0]["toolCall"]
    calls = [each for each in updates if "toolCallId" in each]
    assert {each["toolCallId"] for each in calls} == {asked["toolCallId"]}
    assert [each["status"] for each in calls] == ["pending", "in_progress", "completed"]
    assert asked["content"][0]["path"] == str(project / "a.py")
    assert sent[-1]["result"]["stopReason"] == "end_turn"


@real(ACP, "acpx")
def test_nothing_is_written_where_the_client_said_no(
    installed: Installed, project: Path, tmp_path: Path
) -> None:
    model = script(tmp_path / "s.jsonl", WRITE, {"text": "Then not."})
    words = ("--deny-all", "--format", "json", "exec", "make a")
    ended = acpx(installed, model, project, *words)
    assert list(project.iterdir()) == []
    assert '"status":"failed"' in ended.out
    assert "Then not." in ended.out


@real(ACP, "acpx")
def test_a_session_is_taken_up_with_its_mode_before_its_first_message(
    installed: Installed, project: Path, tmp_path: Path
) -> None:
    """Each command starts us anew; plan mode, set by one, holds for the next."""
    model = script(tmp_path / "s.jsonl", WRITE, {"text": "Only planned."})
    for words in (("sessions", "new"), ("set-mode", "plan")):
        ended = acpx(installed, model, project, *words)
        assert ended.code == 0, ended.err
    ended = acpx(installed, model, project, "--approve-all", "prompt", "make a")
    assert "Only planned." in ended.out, ended.out + ended.err
    assert list(project.iterdir()) == []
    assert acpx(installed, model, project, "sessions", "close").code == 0


@real(ACP, "acpx")
def test_tools_of_the_client_s_own_servers_run(
    installed: Installed, project: Path, tmp_path: Path
) -> None:
    config = tmp_path / "servers.json"
    server = {"name": "near", "command": sys.executable, "args": [str(ODD_SERVER), "good"]}
    config.write_text(json.dumps({"mcpServers": [{**server, "type": "stdio", "env": []}]}))
    execute = call("tool_execute", toolKey="near:echo", arguments={"text": "やあ"})
    model = script(tmp_path / "s.jsonl", {"tool_calls": [execute]}, {"text": "Done."})
    words = ("--mcp-config", str(config), "--approve-all", "--format", "json", "exec", "say it")
    sent = messages(acpx(installed, model, project, *words))
    updates = [each["update"] for each in of_method(sent, "session/update")]
    assert any("やあ" in json.dumps(each.get("content"), ensure_ascii=False) for each in updates)
    assert of_method(sent, "session/new")[0]["mcpServers"][0]["name"] == "near"
