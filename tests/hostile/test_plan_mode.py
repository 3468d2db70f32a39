"""Plan mode: every way to write that we know of, and none that works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.access.permissions import Permissions
from evercontext.app.conversations import open_conversation
from evercontext.domain.tool import Mode
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate


def command(line: str) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": line}


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "new.py", "content": "x", "mode": "create"}),
    ("write_file", {"path": "kept.py", "content": "x", "mode": "overwrite"}),
    ("write_file", {"path": "kept.py", "content": "x", "mode": "append"}),
    ("writeFile", {"path": "new.py", "content": "x"}),
    ("editFile", {"path": "kept.py", "new_content": "x"}),
    ("edit_file", {"path": "kept.py", "edits": [{"old": "1", "new": "2"}]}),
    ("replaceInFile", {"path": "kept.py", "edits": [{"old": "1", "new": "2"}]}),
    ("delete_file", {"path": "kept.py"}),
    ("deleteFile", {"path": "kept.py"}),
    ("move_file", {"path": "kept.py", "to": "gone.py"}),
    ("moveFile", {"path": "kept.py", "to": "gone.py"}),
    command("echo x > new.py"),
    command("echo x | tee new.py"),
    command("sed -i s/1/2/ kept.py"),
    command("rm kept.py"),
    command('python3 -c \'open("new.py", "w")\''),
    command("git init . && git commit --allow-empty -m x"),
    command("ln -s /etc/passwd link && cp kept.py copy.py"),
    ("runCommand", {"command": "touch new.py"}),
    ("shell", {"command": "mkdir folder"}),
    ("run.test", {"command": "touch new.py"}),
    ("run__test", {"command": "touch new.py"}),
    ("run.lint", {"command": "cp kept.py new.py"}),
    ("run.format", {"command": "touch new.py"}),
    ("run.format", {}),
    ("write_file", {"path": "link/../new.py", "content": "x", "mode": "create"}),
    ("write_file", {"path": "out/new.py", "content": "x", "mode": "create"}),
    ("git_commit", {"message": "x"}),
    (
        "tool_execute",
        {
            "toolKey": "evercontext:write_file",
            "arguments": {"path": "new.py", "content": "x", "mode": "create"},
        },
    ),
    ("Write_File", {"path": "new.py", "content": "x", "mode": "create"}),
]


def state(*folders: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below the folders, down to the instant of the last change."""
    found = {}
    for folder in folders:
        for path in sorted([folder, *folder.rglob("*")]):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = (about.st_mode, about.st_mtime_ns, content)
    return found


async def yes(question: ApprovalQuestion) -> ApprovalAnswer:
    return ApprovalAnswer(True, "test")


@pytest.mark.contract("N7", "N27")
async def test_thirty_ways_to_write_and_none_succeeds(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
    (project / "kept.py").write_text("x = 1\n")
    (project / "out").symlink_to(outside)
    turns = []
    for number, (name, given) in enumerate(WAYS, 1):
        # A call that succeeds comes between, or the cap on failures in a row would end the turn.
        listing = {"name": "list_files", "arguments": {"path": ".", "max_items": number}}
        turns += [{"tool_calls": [{"name": name, "arguments": given}]}, {"tool_calls": [listing]}]
    model = testing.write_script(tmp_path / "s.jsonl", [*turns, {"text": "I could not."}])
    before = state(project, outside)
    async with testing.house(tmp_path, max_turns=100) as app:
        talk = await open_conversation(app, model_name=model, mode=Mode.PLAN)
        # Neither consent given beforehand nor consent on the spot opens plan mode.
        report = await talk.turn("write!", Gate(Permissions(yes=True), yes))
        refused = [m for m in talk.history if m.role == "tool" and m.tool_name != "list_files"]
        await talk.end()
    assert state(project, outside) == before
    assert report.final.changed == ()
    assert len(refused) == len(WAYS)
    assert all('"ok": false' in message.content for message in refused)


@pytest.mark.contract("N7")
async def test_tools_that_write_are_not_even_offered(tmp_path: Path) -> None:
    async with testing.house(tmp_path) as app:
        offered = {tool.name for tool in app.toolbox.offered(Mode.PLAN)}
    assert {"read_file", "list_files", "search_files"} <= offered
    assert not {name for name, _ in WAYS} & offered
