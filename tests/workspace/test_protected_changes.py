"""X2: who may change what some program runs without being asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.access.permissions import Permissions
from evercontext.domain.tool import Caller, Door
from evercontext.errors import NobodyToAsk, ProtectedPath
from evercontext.events.log import EventLog
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, nobody
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("99999999-9999-4999-8999-999999999999", Door.CHAT)
HOOK = {"path": ".husky/pre-commit", "content": "npm test\n", "mode": "create"}
PLACES = (
    ".husky/pre-commit lefthook.yml .gitattributes mise.toml .tool-versions sitecustomize.py"
    " .venv/bin/activate node_modules/a/index.js env/bin/activate env/pyvenv.cfg .cargo/config.toml"
    " .yarn/releases/yarn.cjs .pnpmfile.cjs SiteCustomize.py"
)
ORDINARY = "Makefile package.json conftest.py .github/workflows/ci.yml AGENTS.md .yarn/notes.md"


@pytest.mark.parametrize("path", PLACES.split())
async def test_what_a_program_runs_by_itself_needs_a_person(
    workspace: LocalWorkspace, place: Path, tmp_path: Path, path: str
) -> None:
    (place / "env").mkdir()
    (place / "env/pyvenv.cfg").write_text("")
    events = EventLog(tmp_path / "traces")
    arguments = {**HOOK, "path": path, "mode": "overwrite"}
    free = Toolbox(workspace_tools(workspace), events)
    assert isinstance((await free.call("write_file", arguments, CALLER)).error, ProtectedPath)
    alone = free.behind(Gate(Permissions(yes=True), nobody))
    assert isinstance((await alone.call("write_file", arguments, CALLER)).error, NobodyToAsk)
    asked: list[ApprovalQuestion] = []

    async def agree(question: ApprovalQuestion) -> ApprovalAnswer:
        asked.append(question)
        return ApprovalAnswer(True, "a person")

    attended = free.behind(Gate(Permissions(yes=True), agree))
    result = await attended.call("write_file", arguments, CALLER)
    events.close()
    assert result.ok, result.text
    assert [change.path for change in asked[0].changes] == [path]
    assert (place / path).read_text() == "npm test\n"


@pytest.mark.parametrize("path", ORDINARY.split())
async def test_the_projects_own_files_are_the_agents_work(
    workspace: LocalWorkspace, tmp_path: Path, path: str
) -> None:
    events = EventLog(tmp_path / "traces")
    gate = Gate(Permissions(yes=True), nobody)
    toolbox = Toolbox(workspace_tools(workspace), events, gate)
    result = await toolbox.call("write_file", {**HOOK, "path": path}, CALLER)
    events.close()
    assert result.ok, result.text


@pytest.mark.parametrize("name", ["delete_file", "move_file"])
async def test_moving_and_deleting_a_hook_asks_too(
    workspace: LocalWorkspace, place: Path, tmp_path: Path, name: str
) -> None:
    (place / ".husky").mkdir()
    (place / ".husky/pre-commit").write_text("npm test\n")
    (place / "a.sh").write_text("x\n")
    events = EventLog(tmp_path / "traces")
    toolbox = Toolbox(workspace_tools(workspace), events)
    paths = {
        "delete_file": {"path": HOOK["path"]},
        "move_file": {"path": "a.sh", "to": ".husky/post-merge"},
    }
    assert isinstance((await toolbox.call(name, paths[name], CALLER)).error, ProtectedPath)
    events.close()
    assert (place / "a.sh").exists()
