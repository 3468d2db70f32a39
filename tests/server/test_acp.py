from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, schema, spawn_agent_process, text_block

from tests.catalog.world import ODD_SERVER
from tests.cli.command import EVERCONTEXT
from tests.journeys.story import call, script


class Editor:
    """The client side, as an editor implements it."""

    def __init__(self, choice: str) -> None:
        self.choice = choice
        self.said = ""
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if isinstance(update, schema.AgentMessageChunk):
            self.said += getattr(update.content, "text", "")

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.choice)
        return schema.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None:
        pass


def write(path: str) -> dict[str, Any]:
    return {"tool_calls": [call("writeFile", path=path, content="x\n")]}


def steps(editor: Editor, id: str) -> list[str]:
    """The states that the editor was told of one call."""
    return [update.status for update in editor.updates if getattr(update, "tool_call_id", "") == id]


@pytest.mark.slow
@pytest.mark.contract("N7", "N20", "N35")
async def test_an_editor_talks_approves_plans_and_comes_back(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    turns = [write("a.py"), {"text": "作りました。"}, write("b.py"), {"text": "Planned."}]
    model, editor = script(tmp_path / "s.jsonl", *turns), Editor("once")
    command = (EVERCONTEXT, "acp", "-m", model)
    async with spawn_agent_process(editor, *command, cwd=project) as (agent, _):  # type: ignore[arg-type]
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(project), mcp_servers=[])
        assert session.modes is not None
        assert session.modes.current_mode_id == "agent"
        id = session.session_id
        done = await agent.prompt(session_id=id, prompt=[text_block("make a")])
        assert done.stop_reason == "end_turn"
        assert editor.said == "作りました。"
        ((asked, options),) = editor.asked
        assert asked.content[0].new_text == "x\n"
        assert asked.content[0].path == str(project.resolve() / "a.py")
        assert steps(editor, asked.tool_call_id) == ["pending", "in_progress", "completed"]
        assert [option.name for option in options] == ["Allow", "Always allow edit(*)", "Reject"]
        await agent.set_session_mode(session_id=id, mode_id="plan")
        await agent.prompt(session_id=id, prompt=[text_block("make b")])
        assert [path.name for path in project.iterdir()] == ["a.py"]
        statuses = [u.status for u in editor.updates if isinstance(u, schema.ToolCallProgress)]
        assert statuses == ["in_progress", "completed", "failed"]
        with pytest.raises(RequestError):
            await agent.prompt(session_id="nobody", prompt=[text_block("?")])
    again = Editor("no")
    async with spawn_agent_process(again, *command, cwd=project) as (agent, _):  # type: ignore[arg-type]
        await agent.initialize(protocol_version=1)
        await agent.load_session(cwd=str(project), session_id=id, mcp_servers=[])
        assert "作りました。" in again.said
        await agent.prompt(session_id=id, prompt=[text_block("make a again")])
        # The file is there already: that is found out before anybody is asked.
        assert again.asked == []


@pytest.mark.slow
@pytest.mark.contract("N20", "N35", "T7")
async def test_a_session_keeps_servers_mode_and_model(tmp_path: Path) -> None:
    """P13: the editor's servers are used, and a session can be loaded before its first message."""
    project = tmp_path / "project"
    project.mkdir()
    arguments = {"text": "やあ"}
    echo = call("tool_execute", toolKey="my-tools:echo", arguments=arguments)
    model = script(tmp_path / "s.jsonl", {"tool_calls": [echo]}, {"text": "done"})
    other = script(tmp_path / "other.jsonl", {"text": "another model"})
    server = schema.McpServerStdio(
        name="my tools", command=sys.executable, args=[str(ODD_SERVER)], env=[]
    )
    ours = schema.McpServerStdio(name="evercontext", command=EVERCONTEXT, args=["mcp"], env=[])
    editor = Editor("once")
    command = (EVERCONTEXT, "acp", "-m", model)
    async with spawn_agent_process(editor, *command, cwd=project) as (agent, _):  # type: ignore[arg-type]
        greeting = await agent.initialize(protocol_version=1)
        assert greeting.agent_capabilities is not None
        capabilities = greeting.agent_capabilities.mcp_capabilities
        assert capabilities is not None
        assert (capabilities.http, capabilities.sse) == (True, True)
        session = await agent.new_session(cwd=str(project), mcp_servers=[server, ours])
        id = session.session_id
        await agent.set_session_mode(session_id=id, mode_id="plan")
        # An editor that was restarted loads what it has open, also where nothing was said yet.
        loaded = await agent.load_session(cwd=str(project), session_id=id, mcp_servers=[server])
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "plan"
    command = (EVERCONTEXT, "acp", "-m", other)
    async with spawn_agent_process(editor, *command, cwd=project) as (agent, _):  # type: ignore[arg-type]
        await agent.initialize(protocol_version=1)
        loaded = await agent.load_session(cwd=str(project), session_id=id, mcp_servers=[server])
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "plan"
        await agent.set_session_mode(session_id=id, mode_id="agent")
        await agent.prompt(session_id=id, prompt=[text_block("say it again")])
        assert editor.said == "done"
        ((asked, _options),) = editor.asked
        assert steps(editor, asked.tool_call_id) == ["pending", "in_progress", "completed"]
        texts = [str(update) for update in editor.updates]
        assert any("やあ" in text and "completed" in text for text in texts)
        wrong = schema.HttpMcpServer(name="x", type="http", url="ftp://example.invalid", headers=[])
        with pytest.raises(RequestError, match="Invalid params"):
            await agent.new_session(cwd=str(project), mcp_servers=[wrong])
