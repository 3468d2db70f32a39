from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.domain.tool import Caller, Door, Effect
from evercontext.errors import PolicyError
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy
from evercontext.settings import Settings
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.execution_tools import execution_tools
from evercontext.workspace.workspace import LocalWorkspace


@pytest.mark.contract("E53")
async def test_the_settings_decide_what_runs_and_where(
    workspace: LocalWorkspace, place: Path, tmp_path: Path
) -> None:
    settings = Settings(
        root=place, home=tmp_path / "home", sandbox="none", test_cmd="echo by the user"
    )
    tools, _ = execution_tools(settings, agent_policy(), workspace)
    assert {tool.name for tool in tools} == {
        *("run.lint", "run.test", "run.format", "run.http", "run_command")
    }
    assert all(tool.effects & Effect.EXECUTE for tool in tools)
    events = EventLog(tmp_path / "traces")
    toolbox = Toolbox(tools, events)
    caller = Caller("88888888-8888-4888-8888-888888888888", Door.RUN)
    assert "by the user" in (await toolbox.call("run.test", {}, caller)).text
    url = f"http://localhost:{settings.port}/"
    assert isinstance((await toolbox.call("run.http", {"url": url}, caller)).error, PolicyError)
    events.close()
