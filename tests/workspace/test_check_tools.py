"""The execution tools, through the Toolbox, in a real cage."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext import testing
from evercontext.domain.tool import Caller, Door, Mode, ToolResult
from evercontext.errors import InvalidArguments, ModeRefused, NoSandbox, PathEscape, ProgramMissing
from evercontext.events.log import EventLog
from evercontext.files.policy import FilePolicy
from evercontext.files.undo import undo
from evercontext.process.sandbox import available
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.check_tools import Checks, check_tools, split
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.planted_files import MOST_GUARDED, bounded, guarded
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("66666666-6666-4666-8666-666666666666", Door.RUN)
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
LAYERS = [finding.layer for finding in available() if finding.works]
Call = Callable[..., Awaitable[ToolResult]]

pytestmark = pytest.mark.skipif(not LAYERS, reason="no cage works on this machine")


@pytest.fixture(params=LAYERS)
def runner(
    request: pytest.FixtureRequest, workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> CommandRunner:
    environment = {"PATH": PATH, "HOME": str(tmp_path / "user"), "API_KEY": "canary"}
    home = tmp_path / "home"
    return CommandRunner(place, environment, home, str(request.param), recorder=workspace)


@pytest.fixture
async def call(runner: CommandRunner, tmp_path: Path) -> AsyncIterator[Call]:
    events = EventLog(tmp_path / "traces")
    toolbox = Toolbox(check_tools(runner), events)

    async def call(name: str, *, mode: Mode = Mode.AGENT, **arguments: Any) -> ToolResult:
        return await toolbox.call(name, arguments, replace(CALLER, mode=mode))

    yield call
    events.close()


def write_tests(place: Path, body: str) -> None:
    (place / "tests").mkdir(exist_ok=True)
    (place / "tests/test_sums.py").write_text(f"def test_sum():\n    {body}\n")


@pytest.mark.contract("E53")
async def test_tests_that_pass(call: Call, place: Path) -> None:
    write_tests(place, "assert 1 + 1 == 2")
    result = await call("run.test")
    assert result.data["passed"], result.text
    assert result.data["runs"][0]["counts"] == {"passed": 1}
    assert "[exit code 0]" in result.text


@pytest.mark.contract("E53")
async def test_tests_that_fail_are_never_called_a_success(call: Call, place: Path) -> None:
    write_tests(place, "print('5 passed in 0.1s'); assert 1 + 1 == 3")
    result = await call("run__test")
    assert not result.data["passed"]
    assert result.data["runs"][0]["exit_code"] == 1
    assert "[exit code 1]" in result.text


async def test_a_run_without_tests_is_no_success(call: Call, place: Path) -> None:
    (place / "tests").mkdir()
    (place / "app.py").write_text("")
    result = await call("run.test", command="python -m unittest discover")
    assert result.data["runs"][0]["exit_code"] in (0, 5)
    assert not result.data["passed"]


@pytest.mark.contract("E53")
async def test_lint_reports_problems(call: Call, place: Path) -> None:
    (place / "app.py").write_text("import os\n")
    result = await call("run.lint")
    assert not result.data["passed"]
    assert result.data["runs"][0]["counts"] == {"problems": 1}
    result = await call("run.lint", paths=["app.py"])
    assert "app.py" in result.data["runs"][0]["command"]


@pytest.mark.contract("E53", "E54")
async def test_format_changes_are_journalled_and_undone(
    call: Call, place: Path, workspace: LocalWorkspace
) -> None:
    (place / "app.py").write_text("x   =  1\n")
    result = await call("run.format")
    assert result.data["passed"], result.text
    assert [change.path for change in result.changes] == ["app.py"]
    assert (place / "app.py").read_text() == "x = 1\n"
    undo(workspace.journal, [CALLER.trace_id])
    assert (place / "app.py").read_text() == "x   =  1\n"


async def test_nothing_to_run_is_said(call: Call) -> None:
    result = await call("run.lint")
    assert result.data == {"passed": False, "runs": []}
    assert "nothing was checked" in result.text


@pytest.mark.case(77)
@pytest.mark.parametrize("path", ["--output=/tmp/x", "-x", ""])
async def test_options_are_no_paths(call: Call, place: Path, path: str) -> None:
    result = await call("run.lint", paths=[path])
    assert isinstance(result.error, InvalidArguments)


@pytest.mark.case(1, 3)
@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x"])
async def test_paths_stay_inside(call: Call, path: str) -> None:
    assert isinstance((await call("run.test", paths=[path])).error, PathEscape)


@pytest.mark.case(114)
async def test_a_check_command_meets_no_shell(call: Call, place: Path) -> None:
    result = await call("run.test", command="echo '$(touch owned)' ; touch owned2")
    assert "$(touch owned) ; touch owned2" in result.text
    assert list(place.iterdir()) == []


def test_a_command_line_that_cannot_be_read_is_explained() -> None:
    with pytest.raises(InvalidArguments, match="cannot be read"):
        split("echo 'open")
    with pytest.raises(InvalidArguments, match="empty"):
        split("  ")


async def test_a_missing_program_is_an_error_of_the_call(call: Call) -> None:
    assert isinstance((await call("run.test", command="no-such-tool")).error, ProgramMissing)


async def test_a_command_runs_in_a_shell_in_the_cage(call: Call, place: Path) -> None:
    (place / "src").mkdir()
    result = await call("run_command", command="echo hi | tr a-z A-Z > src/out && cat src/out")
    assert result.data["runs"][0]["output"] == "HI"
    assert [change.path for change in result.changes] == ["src/out"]


async def test_a_changed_mode_is_shown_and_undone(
    call: Call, place: Path, workspace: LocalWorkspace
) -> None:
    """X4: `chmod +x` was "0 files changed", with nothing to undo."""
    script = place / "run.sh"
    script.write_text("echo hi\n")
    script.chmod(0o644)
    result = await call("run_command", command="chmod 755 run.sh")
    assert [(change.path, change.modes) for change in result.changes] == [
        ("run.sh", (0o644, 0o755))
    ]
    assert script.stat().st_mode & 0o777 == 0o755
    undo(workspace.journal, [CALLER.trace_id])
    assert script.stat().st_mode & 0o777 == 0o644
    assert script.read_text() == "echo hi\n"


async def test_a_command_that_wanted_the_network_is_told(call: Call) -> None:
    """S4: an approved `pip install` retried for ten seconds, and nothing said why."""
    fetch = "from urllib.request import urlopen; urlopen('http://registry.invalid/')"
    result = await call("run_command", command=f'python3 -c "{fetch}"')
    assert "this command had no network" in result.text
    result = await call("run_command", command="false")
    assert "network" not in result.text


@pytest.mark.case(100, 135)
async def test_a_command_sees_no_secret(call: Call, place: Path, tmp_path: Path) -> None:
    (place / ".env").write_text("canary")
    (tmp_path / "home/config.json").write_text("canary")
    result = await call("run_command", command=f"env; cat .env {tmp_path}/home/config.json; true")
    assert "canary" not in result.text


@pytest.mark.case(69)
async def test_a_command_cannot_change_protected_places(call: Call, place: Path) -> None:
    (place / ".git/hooks").mkdir(parents=True)
    (place / "sub/.git").mkdir(parents=True)
    line = "echo x > .git/hooks/pre-commit; echo x > sub/.git/config; rm -rf .git sub/.git"
    result = await call("run_command", command=line)
    assert not result.data["passed"]
    assert list((place / ".git/hooks").iterdir()) == []
    assert list((place / "sub/.git").iterdir()) == []


@pytest.mark.case(69)
async def test_a_protected_place_that_a_command_makes_is_moved_away(
    call: Call, place: Path, tmp_path: Path
) -> None:
    (place / "sub").mkdir()
    line = (
        "mkdir .vscode sub/.git; echo x > .vscode/tasks.json; echo x > sub/.git/config; : > a.pem"
    )
    result = await call("run_command", command=line)
    assert sorted(path.name for path in place.iterdir()) == ["a.pem", "sub"]
    assert list((place / "sub").iterdir()) == []
    assert result.data["runs"][0]["moved_away"] == [".vscode", "sub/.git"]
    kept = sorted((tmp_path / "home/quarantine").glob("*/*/*"))
    assert [path.name for path in kept] == ["config", "tasks.json"]


@pytest.mark.case(69)
async def test_a_protected_place_cannot_be_swapped_by_moving_what_holds_it(
    call: Call, place: Path
) -> None:
    (place / "pkg/sub/.git/hooks").mkdir(parents=True)
    line = "cd pkg && mv sub old && mkdir -p sub/.git/hooks && echo x > sub/.git/hooks/pre-commit"
    await call("run_command", command=line)
    real = place / ("pkg/old" if (place / "pkg/old").exists() else "pkg/sub")
    assert (real / ".git/hooks").is_dir()
    assert list(place.rglob("pre-commit")) == []


@pytest.mark.case(135)
async def test_a_secret_that_moves_with_its_directory_is_not_shown(
    call: Call, place: Path, tmp_path: Path, workspace: LocalWorkspace
) -> None:
    (place / "pkg/old").mkdir(parents=True)
    (place / "pkg/old/.env").write_text("canary\n")
    (place / "pkg/old/a.txt").write_text("text\n")
    result = await call("run_command", command="mv pkg/old pkg/new")
    assert "canary" not in "".join(f"{change.before}{change.after}" for change in result.changes)
    logged = "".join(path.read_text() for path in (tmp_path / "traces").rglob("*.jsonl"))
    assert "run_command" in logged
    assert "canary" not in logged
    moved = (place / "pkg/new").exists()
    undo(workspace.journal, [CALLER.trace_id])
    assert (place / "pkg/old/.env").read_text() == "canary\n"
    assert moved or not result.changes


@pytest.mark.case(69)
async def test_a_file_that_makes_npm_or_yarn_start_something_is_moved_away(
    call: Call, place: Path
) -> None:
    line = "mkdir -p sub; echo script-shell=./x > .npmrc; echo yarnPath: x > sub/.yarnrc.yml"
    await call("run_command", command=line)
    assert list(place.rglob(".*rc*")) == []


async def test_what_the_user_saved_anew_while_a_command_ran_stays(
    runner: CommandRunner, place: Path
) -> None:
    (place / ".mcp.json").write_text("old")
    (place / "src").mkdir()
    argv = ("sh", "-c", "touch src/started; while [ ! -e src/go ]; do sleep 0.05; done")
    running = asyncio.create_task(runner.run(argv, CALLER, timeout=20))
    while not (place / "src/started").exists() and not running.done():
        await asyncio.sleep(0.05)
    (place / "fresh").write_text("new")
    (place / "fresh").rename(place / ".mcp.json")
    (place / "src/go").touch()
    assert (await running).put_away.places == ()
    assert (place / ".mcp.json").read_text() == "new"


@pytest.mark.contract("N7")
async def test_plan_mode_offers_no_command(call: Call, place: Path) -> None:
    for name in ("run.test", "run.lint", "run.format", "run_command"):
        result = await call(name, mode=Mode.PLAN, command="touch x")
        assert isinstance(result.error, ModeRefused)
    assert list(place.iterdir()) == []


@pytest.mark.contract("N7")
async def test_a_command_run_in_plan_mode_writes_nothing(
    runner: CommandRunner, place: Path
) -> None:
    (place / "a.txt").write_text("a")
    caller = replace(CALLER, mode=Mode.PLAN)
    argv = ("sh", "-c", "cat a.txt; echo b > a.txt; touch new; mkdir d; rm a.txt")
    outcome = await runner.run(argv, caller, timeout=20)
    assert outcome.completed.text == "a"
    assert [path.name for path in place.iterdir()] == ["a.txt"]
    assert (place / "a.txt").read_text() == "a"


@pytest.mark.contract("L13")
async def test_a_command_that_hangs_is_stopped_and_said_to_be(call: Call) -> None:
    result = await call("run_command", command="sleep 60", timeout=1)
    assert result.data["runs"][0]["timed_out"]
    assert "not finished" in result.text


async def test_configured_commands_win(runner: CommandRunner, tmp_path: Path) -> None:
    events = EventLog(tmp_path / "configured")
    toolbox = Toolbox(check_tools(runner, Checks(test="echo configured")), events)
    result = await toolbox.call("run.test", {}, CALLER)
    events.close()
    assert "configured" in result.text


async def test_without_a_cage_nothing_runs(runner: CommandRunner, place: Path) -> None:
    with pytest.raises(NoSandbox):
        await replace(runner, sandbox="seatbelt").run(("touch", "x"), CALLER, timeout=9)
    assert list(place.iterdir()) == []


def test_protected_places_are_found_and_sorted(place: Path) -> None:
    for name in (".git", "sub/.git", "node_modules/x/.git", ".ssh"):
        (place / name).mkdir(parents=True)
    for name in (".env", "sub/.env.local", ".env.example", "cert.pem"):
        (place / name).write_text("")
    found = guarded(place, FilePolicy())
    hidden = {str(path.relative_to(place)) for path in found.hidden}
    protected = {str(path.relative_to(place)) for path in found.protected}
    assert hidden == {".env", "sub/.env.local", ".ssh"}
    assert protected == {".git", "sub/.git", "cert.pem"}


@pytest.mark.contract("N20")
async def test_many_secrets_are_all_hidden(call: Call, place: Path) -> None:
    for number in range(210):
        (place / f"d{number}").mkdir()
        (place / f"d{number}/.env").write_text("canary\n")
    result = await call("run_command", command="cat */.env 2>/dev/null; echo ended")
    assert "ended" in result.text
    assert "canary" not in result.text


async def test_a_tree_with_too_many_secrets_runs_nothing(call: Call, place: Path) -> None:
    for number in range(MOST_GUARDED + 1):
        (place / f".env.{number}").write_text("canary\n")
    result = await call("run_command", command="touch ran; cat .env.*")
    assert isinstance(result.error, NoSandbox)
    assert "more than 1,000 protected places" in result.text
    assert "--root" in result.text
    assert not (place / "ran").exists()


def test_a_tree_too_large_to_be_looked_through_is_refused(place: Path) -> None:
    for number in range(4):
        (place / f"{number}.txt").touch()
    assert bounded(place, FilePolicy(), seen=4) == guarded(place, FilePolicy())
    with pytest.raises(NoSandbox, match="more than 3 files"):
        bounded(place, FilePolicy(), seen=3)


async def test_what_a_command_made_is_found_whatever_else_it_made(call: Call, place: Path) -> None:
    line = f"for i in $(seq {MOST_GUARDED + 1}); do : > a$i.pem; done; mkdir -p z/.vscode"
    result = await call("run_command", command=line, timeout=60)
    assert result.data["runs"][0]["moved_away"] == ["z/.vscode"]


async def test_a_secret_behind_a_link_is_read_through_neither_name(call: Call, place: Path) -> None:
    (place / "config/keys").mkdir(parents=True)
    (place / "config/settings.txt").write_text("canary\n")
    (place / "config/keys/.env").write_text("canary\n")
    (place / "open.txt").write_text("open\n")
    (place / ".env").symlink_to("config/settings.txt")
    (place / ".env.keys").symlink_to("config/keys")
    (place / ".env.loop").symlink_to(".env.loop")
    line = "cat .env config/settings.txt .env.keys/.env config/keys/.env; cat open.txt"
    result = await call("run_command", command=line)
    assert "open" in result.data["runs"][0]["output"]
    assert "canary" not in result.text


async def test_a_secret_that_is_a_link_to_the_whole_tree_is_refused(
    call: Call, place: Path
) -> None:
    (place / ".aws").symlink_to(".")
    result = await call("run_command", command="touch ran")
    assert isinstance(result.error, NoSandbox)
    assert not (place / "ran").exists()


async def test_the_log_has_the_exit_code_of_a_command(call: Call, tmp_path: Path) -> None:
    result = await call("run_command", command="echo out; exit 3")
    assert result.data["exit_code"] == 3
    logged = "".join(path.read_text() for path in (tmp_path / "traces").rglob("*.jsonl"))
    events = [json.loads(line) for line in logged.splitlines()]
    ended = [event for event in events if event["parent"] and event["type"] != "audit"]
    assert [event["data"]["exit_code"] for event in ended] == [3]


@pytest.mark.case(80)
@pytest.mark.parametrize(
    ("kind", "command", "kept"),
    [
        ("test", "sh -c 'echo edited > a.py'", True),
        ("test", "sh -c 'echo edited > a.py' --snapshot-update", False),
        ("format", "sh -c 'echo edited > a.py'", False),
    ],
)
async def test_only_commands_that_are_to_change_files_have_their_changes_taken_back(
    tmp_path: Path, kind: str, command: str, kept: bool
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.py").write_text("old\n")
    async with testing.house(tmp_path) as app:
        caller = Caller("22222222-2222-4222-8222-222222222222", Door.RUN)
        result = await app.toolbox.call(f"run.{kind}", {"command": command}, caller)
        assert isinstance(app.workspace, LocalWorkspace)
        done = undo(app.workspace.journal, [caller.trace_id])
    assert ("changed meanwhile, likely by the user: a.py" in result.text) is kept
    assert bool(done.skipped) is kept
    assert ((tmp_path / "project" / "a.py").read_text() == "old\n") is not kept
