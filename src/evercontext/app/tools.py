"""Open the workspace and gather the tools of every package."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from evercontext import plugins
from evercontext.app.evaluation import lazy_evaluator
from evercontext.app.index import open_index_tools
from evercontext.domain.event import Notice
from evercontext.domain.tool import Caller, Tool
from evercontext.errors import EverContextError
from evercontext.evaluation.evaluator import BACKOFF
from evercontext.evaluation.score_history import EvaluationHistory
from evercontext.evaluation.tools import SECONDS, evaluation_tools
from evercontext.events.log import EventLog
from evercontext.process.child import Launch
from evercontext.process.sandbox import Sandbox, choose
from evercontext.settings import Settings, process_environment
from evercontext.settings.build_file_policy import agent_rules, gateway_rules
from evercontext.workspace.background_commands import BackgroundCommands
from evercontext.workspace.command_marks import settle
from evercontext.workspace.execution_tools import execution_tools
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.git_tools import Git, git_tools
from evercontext.workspace.workspace import LocalWorkspace, Workspace

_GIT_SECONDS = 3.0
"""What the status of a repository may take before a prompt goes without it."""


def open_tools(
    settings: Settings, stack: AsyncExitStack, events: EventLog, history: EvaluationHistory
) -> tuple[Workspace, list[Tool], BackgroundCommands | None]:
    """Open the workspace, here or behind ``EC_MCP_URL``, and return it with its tools.

    With them go the commands that tools leave running here.
    """
    if settings.mcp_url:
        (workspace, tools), background = _remote(settings, settings.mcp_url, stack), None
    else:
        workspace, tools, background = _local(settings, stack, events)
    # The tool must outlast its judge's attempts, or the last one would never be made.
    waits = BACKOFF.attempts * BACKOFF.longest_wait
    seconds = max(SECONDS, BACKOFF.attempts * settings.codex_timeout / 1000 + waits + 30)
    judging = evaluation_tools(lazy_evaluator(settings, stack, events, history), seconds)
    searching = open_index_tools(settings, stack, events)
    return workspace, [*tools, *searching, *judging], background


def _remote(settings: Settings, url: str, stack: AsyncExitStack) -> tuple[Workspace, list[Tool]]:
    from evercontext.workspace.remote_workspace import RemoteWorkspace

    remote = RemoteWorkspace(url, settings.token)
    stack.push_async_callback(remote.aclose)
    # Commands would run here while the files are there, so only what REST offers is offered.
    return remote, [replace(tool, audited=False) for tool in workspace_tools(remote)]


def _local(
    settings: Settings, stack: AsyncExitStack, events: EventLog
) -> tuple[Workspace, list[Tool], BackgroundCommands]:
    agent, gateway = agent_rules(settings), gateway_rules(settings)
    environment = process_environment()
    local = LocalWorkspace.open(
        settings.root, settings.home, gateway=gateway, agent=agent, environment=environment
    )
    stack.callback(local.close)
    executing, background = execution_tools(settings, agent, local, partial(_tell, events))
    stack.push_async_callback(background.close)
    git = git_tools(Git(local.tree, environment, _ReadOnly(settings)))
    return (
        local,
        [
            *workspace_tools(local),
            *executing,
            *(tool for tool in git if not tool.writes),
        ],
        background,
    )


def _tell(events: EventLog, text: str, caller: Caller) -> None:
    notice = Notice(level="warning", text=text)
    events.emit(notice, trace_id=caller.trace_id, parent=caller.parent)


@dataclass(frozen=True, slots=True)
class _ReadOnly:
    """A sandbox in which nothing can be written, for the programs that a repository configures."""

    settings: Settings

    def enter(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        # Which sandbox works is detected by the first command, not at start.
        root, layer = self.settings.root.resolve(), choose(self.settings.sandbox)
        above = next((place / ".git" for place in root.parents if (place / ".git").exists()), None)
        sandbox = Sandbox(root, layer, read_only=True, readable=(above,) if above else ())
        return sandbox.present().enter(argv, cwd, env)


async def git_status(settings: Settings, workspace: Workspace) -> str:
    """Return branch and changed files; nothing where there is no repository, or git is slow."""
    local = workspace.local
    if local is None:
        return ""
    git = Git(local.tree, process_environment(), _ReadOnly(settings))
    try:
        async with asyncio.timeout(_GIT_SECONDS):
            return await git.status()
    except (EverContextError, TimeoutError):
        return ""


def plugin_tools() -> list[Tool]:
    """Return the tools of plugins; finding them takes time, so call it in a thread."""
    return [tool for point in plugins.installed("tools").values() for tool in plugins.load(point)]


async def settle_commands(settings: Settings) -> tuple[str, ...]:
    """Clean up after commands that were cut off, in every project; return notices."""
    environment = process_environment()
    return await asyncio.to_thread(settle, settings.home, agent_rules(settings), environment)
