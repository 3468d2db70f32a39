"""A7: commands in the background: their output at hand, stopped by name and with their session."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from evercontext.domain.tool import Caller, Door, ToolResult
from evercontext.errors import NotFound, PolicyError
from evercontext.events.log import EventLog
from evercontext.files.file_tree import WriteMode
from evercontext.files.policy import FilePolicy
from evercontext.process.sandbox import available
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.background_commands import (
    MOST_AT_ONCE,
    MOST_OUTPUT,
    BackgroundCommands,
    background_tools,
)
from evercontext.workspace.check_tools import check_tools
from evercontext.workspace.command_marks import settle
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("99999999-9999-4999-8999-999999999999", Door.CHAT, session="one")
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
LAYER = next((finding.layer for finding in available() if finding.works), None)
pytestmark = pytest.mark.skipif(LAYER is None, reason="no sandbox works on this machine")


class Bench:
    """A toolbox with commands in the background."""

    def __init__(self, runner: CommandRunner, events: EventLog) -> None:
        self.commands = BackgroundCommands(runner)
        tools = [*check_tools(runner, background=self.commands), *background_tools(self.commands)]
        self.box = Toolbox(tools, events)

    async def start(self, line: str, caller: Caller = CALLER) -> ToolResult:
        arguments = {"command": line, "background": True}
        return await self.box.call("run_command", arguments, caller)

    async def call(self, name: str, caller: Caller = CALLER, **arguments: str) -> ToolResult:
        return await self.box.call(name, arguments, caller)

    async def until(self, id: str, words: str) -> str:
        """Look at the output until it holds these words."""
        seen = ""
        async with asyncio.timeout(60):
            while words not in seen:
                seen += (await self.call("command_output", id=id)).text
                await asyncio.sleep(0.01)
        return seen


@pytest.fixture
async def bench(workspace: LocalWorkspace, place: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    environment = {"PATH": PATH, "HOME": str(tmp_path / "user")}
    runner = CommandRunner(place, environment, tmp_path / "home", str(LAYER), recorder=workspace)
    events = EventLog(tmp_path / "traces")
    bench = Bench(runner, events)
    yield bench
    await bench.commands.close()
    events.close()


async def test_its_output_is_shown_as_it_comes_and_it_is_stopped(bench: Bench) -> None:
    result = await bench.start("echo ready; sleep 1000")
    assert result.data == {"background": "1"}, result.text
    assert "background command 1: running" in result.text
    seen = result.text if "ready" in result.text else await bench.until("1", "ready")
    assert "ready" in seen
    assert "echo ready" in (await bench.call("command_output")).text
    stopped = await bench.call("stop_command", id="1")
    assert "stopped after" in stopped.text
    assert not next(iter(bench.commands)).running
    assert (await bench.call("stop_command", id="1")).error


async def test_one_that_ends_at_once_says_how(bench: Bench) -> None:
    await bench.start("echo hi; exit 3")
    assert "exit code 3" in await bench.until("1", "exit code")


async def test_another_session_sees_and_stops_nothing_of_it(bench: Bench) -> None:
    await bench.start("sleep 1000")
    other = replace(CALLER, session="other")
    assert "no command" in (await bench.call("command_output", other)).text
    assert isinstance((await bench.call("stop_command", other, id="1")).error, NotFound)
    await bench.commands.stop_session("other")
    assert next(iter(bench.commands)).running


async def test_the_session_takes_its_commands_along(bench: Bench) -> None:
    await bench.start("sleep 1000")
    command = next(iter(bench.commands))
    await bench.commands.stop_session("one")
    assert command.work.done()
    assert list(bench.commands) == []


async def test_a_server_for_other_programs_has_none(bench: Bench) -> None:
    refused = await bench.start("sleep 1000", replace(CALLER, door=Door.MCP))
    assert isinstance(refused.error, PolicyError)


async def test_there_is_a_most_of_them(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evercontext.workspace.background_commands.FIRST_LOOK", 0.01)
    for _ in range(MOST_AT_ONCE):
        assert (await bench.start("sleep 1000")).ok
    assert isinstance((await bench.start("sleep 1000")).error, PolicyError)


async def test_of_endless_output_the_newest_is_kept(bench: Bench) -> None:
    await bench.start("head -c 3000000 /dev/zero | tr '\\0' x; echo END")
    command = next(iter(bench.commands))
    async with asyncio.timeout(60):
        await asyncio.wait({command.work})
    assert command.size < MOST_OUTPUT + 70_000
    assert command.output(new=False).rstrip().endswith("END")
    assert command.work.result().completed.exit_code == 0


async def test_what_a_person_approved_meanwhile_is_not_taken_for_the_commands(
    bench: Bench, workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> None:
    """A file made by a tool while a command runs stays; what the command made or changed goes."""
    line = (
        "until [ -e go ]; do sleep 0.01; done; mkdir .vscode; echo x > .vscode/tasks.json;"
        " echo x >> lefthook.yml; echo x > .husky/more; echo ready; sleep 1000"
    )
    await bench.start(line)
    approved = replace(CALLER, approved=True)
    for path in (".pre-commit-config.yaml", "a/.githooks/pre-commit", "lefthook.yml", ".husky/x"):
        await workspace.write(path, "mine\n", WriteMode.CREATE, approved)
    await workspace.write(".pre-commit-config.yaml", "again\n", WriteMode.OVERWRITE, approved)
    (place / "go").touch()
    await bench.until("1", "ready")
    await bench.call("stop_command", id="1")
    left = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert left == {"go", ".pre-commit-config.yaml", "a/.githooks/pre-commit"}
    (notice,) = settle(tmp_path / "home", FilePolicy(), {})
    assert all(name in notice for name in (".vscode", "lefthook.yml", ".husky", "quarantine"))


async def test_what_is_moved_away_at_its_end_is_said(
    workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> None:
    environment, notices = {"PATH": PATH, "HOME": str(tmp_path / "user")}, list[str]()
    runner = CommandRunner(
        place,
        environment,
        tmp_path / "home",
        str(LAYER),
        recorder=workspace,
        tell=lambda text, caller: notices.append(text),
    )
    commands = BackgroundCommands(runner)
    command = await commands.start("echo x > .envrc", CALLER)
    async with asyncio.timeout(60):
        await asyncio.wait({command.work})
    assert ".envrc" in command.status()
    assert ".envrc" in notices[0]
