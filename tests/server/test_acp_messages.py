"""What an editor is sent and sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from acp import schema

from evercontext.agent.todo import NAME
from evercontext.domain.event import Event, Step, StepResult
from evercontext.domain.tool import Caller, Door, Effect, Mode, Tool, ToolResult
from evercontext.errors import ConfigError
from evercontext.server.acp_messages import ToolCallUpdates, server_configs
from evercontext.tools.approval_gate import ApprovalQuestion


async def _run(arguments: Any, caller: Caller) -> ToolResult:
    return ToolResult("")


WRITE = Tool("write", "Write.", {}, Effect.WRITE, _run)


def step(id: str, tool: str, **arguments: Any) -> Event:
    body = Step(tool=tool, arguments=arguments, effects=("write",), door="chat", mode="agent")
    return Event(id, "2026-01-01T00:00:00Z", "t", body)


def ended(parent: str, tool: str) -> Event:
    body = StepResult(tool=tool, ok=True, text="")
    return Event("z", "2026-01-01T00:00:00Z", "t", body, parent)


def question(**arguments: Any) -> ApprovalQuestion:
    return ApprovalQuestion(WRITE, arguments, (), Caller("t", Door.CHAT))


def test_a_call_has_one_id_from_the_question_to_its_end() -> None:
    """P13: two calls of the same tool are not taken for each other."""
    calls = ToolCallUpdates(Path("/p"))
    first = calls.announce(question(path="a.py"))
    second = calls.announce(question(path="b.py"))
    assert [location.path for location in first.locations or ()] == ["/p/a.py"]
    assert calls.update(step("e1", "write", path="b.py")).tool_call_id == second.tool_call_id
    assert calls.update(step("e2", "write", path="[secret]")).tool_call_id == first.tool_call_id
    assert calls.update(ended("e2", "write")).tool_call_id == first.tool_call_id
    assert calls.update(ended("e1", "write")).tool_call_id == second.tool_call_id
    unasked = calls.update(step("e3", "write", path="c.py"))
    assert (unasked.tool_call_id, unasked.status) == ("e3", "in_progress")
    calls.announce(question(path="never.py"))
    calls.forget_questions()
    assert calls.update(step("e4", "write", path="never.py")).tool_call_id == "e4"


def test_servers_of_an_editor_are_read_as_those_of_a_client() -> None:
    env = [schema.EnvVariable(name="KEY", value="v")]
    header = schema.HttpHeader(name="Authorization", value="Bearer x")
    configs = server_configs(
        [
            schema.McpServerStdio(name="my tools!", command="/bin/s", args=["-x"], env=env),
            schema.HttpMcpServer(name="web", type="http", url="https://h/mcp", headers=[header]),
            schema.SseMcpServer(name="old", type="sse", url="http://h/sse", headers=[]),
            schema.McpServerStdio(name="evercontext", command="evercontext", args=[], env=[]),
        ]
    )
    assert [config.id for config in configs] == ["my-tools", "web", "old"]
    assert (configs[0].argv, configs[0].env) == (("/bin/s", "-x"), {"KEY": "v"})
    assert configs[1].headers == {"Authorization": "Bearer x"}
    assert [config.transport for config in configs] == ["stdio", "http", "sse"]
    with pytest.raises(ConfigError, match="cannot be a server's name"):
        server_configs([schema.McpServerStdio(name="…", command="x", args=[], env=[])])


def test_a_list_that_was_refused_is_no_plan() -> None:
    """What a model wrote in a wrong shape is not shown, and does not end the session's updates."""
    calls = ToolCallUpdates(Path("/p"))
    refused = Step(
        tool=NAME, arguments={"items": ["a"]}, effects=(), door=Door.CHAT, mode=Mode.AGENT
    )
    assert calls.update(Event("e", "2026-01-01T00:00:00Z", "t", refused)) is None
