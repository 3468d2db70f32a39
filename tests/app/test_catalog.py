"""The agent's toolbox with outside servers: the two tools come with the first server."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.access.router_projects import Projects, RouterProject
from evercontext.app import EverContext
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.settings import load
from tests.catalog.world import odd


@pytest.mark.contract("T1", "T37")
async def test_the_two_tools_come_with_the_first_server(tmp_path: Path) -> None:
    settings = load({"root": str(tmp_path)})
    async with EverContext.open(settings) as app:
        assert "tool_discovery" not in {tool.name for tool in app.toolbox}
        await app.catalog.servers.table.put(odd("one"))
    async with EverContext.open(settings) as app:
        caller = Caller("trace", Door.RUN)
        found = await app.toolbox.call("tool_discovery", {"query": "say the text again"}, caller)
        assert found.data["results"][0]["toolKey"] == "one:echo"
        call = {"toolKey": "one:echo", "arguments": {"text": "x"}}
        done = await app.toolbox.call("tool_execute", call, caller)
        assert done.data["result"]["content"][0]["text"] == "x"
        planned = Caller("trace", Door.RUN, Mode.PLAN)
        refused = await app.toolbox.call("tool_execute", call, planned)
        assert refused.error is not None


@pytest.mark.contract("T10", "T19")
async def test_a_project_is_found_by_its_directory(tmp_path: Path) -> None:
    inside, outside = tmp_path / "web" / "app", tmp_path / "other"
    inside.mkdir(parents=True)
    outside.mkdir()
    found = {}
    for place in (inside, outside):
        async with EverContext.open(load({"root": str(place)})) as app:
            await app.catalog.servers.table.put(odd("mine", project="web"))
            await Projects(app.store).put(RouterProject("web", str(tmp_path / "web")))
            caller = Caller("trace", Door.RUN, road=app.toolbox)
            found[place] = {card.server for card in await app.catalog.entries(caller)}
    assert "mine" in found[inside]
    assert "mine" not in found[outside]
