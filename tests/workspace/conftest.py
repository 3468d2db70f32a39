from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext.domain.tool import Caller, Door, Mode, ToolResult
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy, gateway_policy
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace

TRACE = "55555555-5555-4555-8555-555555555555"
CALLER = Caller(TRACE, Door.CHAT, session="s1")

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
async def workspace(place: Path, tmp_path: Path) -> AsyncIterator[LocalWorkspace]:
    found = LocalWorkspace.open(
        place, tmp_path / "home", gateway=gateway_policy(), agent=agent_policy()
    )
    yield found
    found.close()


@pytest.fixture
async def toolbox(workspace: LocalWorkspace, tmp_path: Path) -> AsyncIterator[Toolbox]:
    events = EventLog(tmp_path / "traces")
    yield Toolbox(workspace_tools(workspace), events)
    events.close()


@pytest.fixture
def call(toolbox: Toolbox) -> Call:
    """Call a tool the way every door does."""

    async def call(
        name: str,
        *,
        door: Door = Door.CHAT,
        in_mode: Mode = Mode.AGENT,
        session: str = "s1",
        **arguments: Any,
    ) -> ToolResult:
        caller = replace(CALLER, door=door, mode=in_mode, session=session)
        return await toolbox.call(name, arguments, caller)

    return call
