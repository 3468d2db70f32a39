"""X4: installed programs run later and outside, and no diff shows them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evercontext.access.approval_rules import parse
from evercontext.access.permissions import Permissions
from evercontext.domain.tool import Caller, Door
from evercontext.events.log import EventLog
from evercontext.process.sandbox import available
from evercontext.tools.approval_gate import ApprovalAnswer, ApprovalQuestion, Gate, ask_for_writes
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.check_tools import check_tools
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.generated_files import installs
from evercontext.workspace.workspace import LocalWorkspace

LAYERS = [finding.layer for finding in available() if finding.works]
INSTALLED = (".venv/bin/activate", "node_modules/.bin/tsc", "env/lib/site.pth")
CALLER = Caller("44444444-4444-4444-8444-444444444444", Door.CHAT)
NEEDS_SANDBOX = pytest.mark.skipif(not LAYERS, reason="no sandbox works on this machine")


@pytest.fixture(params=LAYERS)
def runner(
    request: pytest.FixtureRequest, workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> CommandRunner:
    for path in (*INSTALLED, "a/.git/config"):
        (place / path).parent.mkdir(parents=True)
        (place / path).write_text("good\n")
    (place / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path / "user")}
    home = tmp_path / "home"
    return CommandRunner(place, environment, home, str(request.param), recorder=workspace)


@NEEDS_SANDBOX
async def test_a_command_cannot_change_installed_programs(
    runner: CommandRunner, place: Path, tmp_path: Path
) -> None:
    events = EventLog(tmp_path / "traces")
    toolbox = Toolbox(check_tools(runner), events)
    line = (
        f"for f in {' '.join(INSTALLED)}; do echo evil > $f; done;"
        " mv .venv gone; rm -r node_modules; echo evil > node_modules/new; false"
    )
    result = await toolbox.call("run_command", {"command": line}, CALLER)
    events.close()
    for path in INSTALLED:
        assert (place / path).read_text() == "good\n"
    assert not (place / "node_modules/new").exists()
    assert "once a person approved" in result.text
    assert sorted(path.name for path in (place / "node_modules").iterdir()) == [".bin"]


@NEEDS_SANDBOX
async def test_build_tools_find_their_caches_writable_and_are_told_of(
    runner: CommandRunner, place: Path
) -> None:
    (place / "node_modules/.cache").mkdir()
    (place / "node_modules/.cache/old").write_text("x")
    (place / ".next").mkdir()
    (place / ".next/old.js").write_text("x")
    await asyncio.sleep(0.05)
    line = (
        "mkdir node_modules/.cache/babel && echo x > node_modules/.cache/babel/a.json &&"
        " echo x > node_modules/.vite-temp/config.mjs && rm node_modules/.vite-temp/config.mjs &&"
        " echo x > .next/server.js"
    )
    outcome = await runner.run(("sh", "-c", line), CALLER, timeout=60)
    assert outcome.completed.exit_code == 0, outcome.completed
    counted = {one.folder: (one.files, one.some) for one in outcome.touched}
    assert counted == {
        ".next": (1, ("server.js",)),
        "node_modules/.cache": (1, ("babel/a.json",)),
    }
    assert sorted(path.name for path in (place / "node_modules").iterdir()) == [".bin", ".cache"]


@NEEDS_SANDBOX
async def test_a_command_that_a_person_approved_to_install_may(
    runner: CommandRunner, place: Path, tmp_path: Path
) -> None:
    events = EventLog(tmp_path / "traces")
    toolbox = Toolbox(check_tools(runner), events)

    async def agree(question: ApprovalQuestion) -> ApprovalAnswer:
        return ApprovalAnswer(True, "a person")

    npm = place / "tools/npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho new > node_modules/b.js\n")
    npm.chmod(0o755)
    line = "cd . && tools/npm install"
    refused = await toolbox.call("run_command", {"command": line}, CALLER)
    assert not (place / "node_modules/b.js").exists(), refused.text
    gate = Gate(ask_for_writes, agree)
    allowed = await toolbox.behind(gate).call("run_command", {"command": line}, CALLER)
    events.close()
    assert (place / "node_modules/b.js").read_text() == "new\n", allowed.text
    assert allowed.data["runs"][0]["touched"] == {"node_modules": 1}
    assert "node_modules: b.js" in allowed.text


@NEEDS_SANDBOX
async def test_a_stored_rule_is_an_approval_and_a_general_yes_is_none(
    runner: CommandRunner, place: Path, tmp_path: Path
) -> None:
    events = EventLog(tmp_path / "traces")
    toolbox = Toolbox(check_tools(runner), events)
    npm = place / "tools/npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho new > node_modules/b.js\n")
    npm.chmod(0o755)
    arguments = {"command": "tools/npm install"}
    anything = toolbox.behind(Gate(Permissions(yes=True)))
    await anything.call("run_command", arguments, CALLER)
    assert not (place / "node_modules/b.js").exists()
    rule = parse("allow", "run_command(tools/npm install*)")
    ruled = toolbox.behind(Gate(Permissions(stored=[rule])))
    result = await ruled.call("run_command", arguments, CALLER)
    events.close()
    assert (place / "node_modules/b.js").exists(), result.text


@NEEDS_SANDBOX
async def test_a_new_environment_is_told(runner: CommandRunner, place: Path) -> None:
    # A folder that is there: without mounts, Landlock lets nothing be made in a root with .git.
    (place / "sub").mkdir()
    line = "mkdir -p sub/.venv/bin && echo x > sub/.venv/bin/activate"
    outcome = await runner.run(("sh", "-c", line), CALLER, timeout=60)
    assert outcome.completed.exit_code == 0, outcome.completed
    assert [one.text for one in outcome.touched] == ["sub/.venv: bin/activate"]


@pytest.mark.parametrize(
    ("line", "so"),
    [
        ("npm install", True),
        ("cd web && npm ci --no-audit", True),
        ("NODE_ENV=x pnpm -s add left-pad", True),
        ("yarn", True),
        ("python3 -m pip install -e .", True),
        ("python3.11 -m venv .venv", True),
        (".venv/bin/pip install x", True),
        ("uv sync", True),
        ("npm test", False),
        ("npm run install-things", False),
        ("python -m pytest", False),
        ("echo npm install", False),
        ("yarn build", False),
    ],
)
def test_which_commands_install(line: str, so: bool) -> None:
    assert installs(line) is so
