"""The tools of the house, gathered from every room's door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from evercontext import plugins
from evercontext.app.embedding import choose_embedder, uses_vectors
from evercontext.app.file_rules import agent_rules, gateway_rules
from evercontext.app.judging import open_judge
from evercontext.app.redaction import redactor as redactor
from evercontext.domain.event import Notice
from evercontext.domain.tool import Caller, Tool
from evercontext.evaluation.evaluator import BACKOFF, Evaluator
from evercontext.evaluation.history import EvaluationHistory, Occasion
from evercontext.evaluation.tools import SECONDS, GetEvaluator, evaluation_tools
from evercontext.events.log import EventLog
from evercontext.index.opener import IndexOpener
from evercontext.index.tools import index_tools
from evercontext.process.child import Launch
from evercontext.process.sandbox import Sandbox, choose
from evercontext.settings import Settings, process_environment
from evercontext.workspace.execution_tools import execution_tools
from evercontext.workspace.git import Git, git_tools
from evercontext.workspace.tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace, Workspace

ESSENTIAL = ("list_files", "read_file", "write_file")
"""All that a tiny model is offered: it chooses badly among many."""


def equip(
    settings: Settings, stack: AsyncExitStack, events: EventLog, history: EvaluationHistory
) -> tuple[Workspace, list[Tool]]:
    """Open the workspace, here or behind ``EC_MCP_URL``, and return it with every tool."""
    if settings.mcp_url:
        workspace, tools = _remote(settings, settings.mcp_url, stack)
    else:
        workspace, tools = _local(settings, stack, events)
    # The tool must outlast its judge's attempts, or the last of them would never be made.
    waits = BACKOFF.attempts * BACKOFF.longest_wait
    seconds = max(SECONDS, BACKOFF.attempts * settings.codex_timeout / 1000 + waits + 30)
    judging = evaluation_tools(_evaluator(settings, stack, events, history), seconds)
    searching = _searching(settings, stack, events)
    return workspace, [*tools, *searching, *judging]


def _searching(settings: Settings, stack: AsyncExitStack, events: EventLog) -> list[Tool]:
    """The code index, here or behind ``EC_RAG_URL``; opened when something is looked for."""
    place = index_place(settings, events)
    stack.push_async_callback(place.close)
    tools = index_tools(place, events)
    if not settings.rag_url:
        return tools
    from evercontext.index.remote import RemoteIndex

    remote = RemoteIndex(settings.rag_url, settings.token, events)
    stack.push_async_callback(remote.aclose)
    return remote.adopt(tools)


def index_place(
    settings: Settings, events: EventLog, warn: Callable[[str], None] | None = None
) -> IndexOpener:
    """The code index of the settings' root, the same for every command and every server."""
    return IndexOpener(
        settings.root,
        settings.home,
        agent_rules(settings),
        redactor(settings),
        events,
        use_vectors=uses_vectors(settings),
        embedder=partial(choose_embedder, settings),
        warn=warn,
    )


def _evaluator(
    settings: Settings, stack: AsyncExitStack, events: EventLog, history: EvaluationHistory
) -> GetEvaluator:
    """The evaluator, made when the first document is judged."""
    made: list[Evaluator] = []

    async def get() -> Evaluator:
        if not made:
            chosen, _ = await open_judge(settings, stack)
            occasion = Occasion("tool", project=str(settings.root.resolve()))
            target = settings.target_score
            evaluator = Evaluator(
                chosen.judge,
                target=target,
                events=events,
                history=history,
                occasion=occasion,
                reason=chosen.reason,
                others=chosen.others,
            )
            made.append(evaluator)
        return made[0]

    return get


def _remote(settings: Settings, url: str, stack: AsyncExitStack) -> tuple[Workspace, list[Tool]]:
    from evercontext.workspace.remote_workspace import RemoteWorkspace

    remote = RemoteWorkspace(url, settings.token)
    stack.push_async_callback(remote.aclose)
    # Commands would run here while the files are there: what REST does not offer is not offered.
    return remote, [replace(tool, audited=False) for tool in workspace_tools(remote)]


def _local(
    settings: Settings, stack: AsyncExitStack, events: EventLog
) -> tuple[Workspace, list[Tool]]:
    agent, gateway = agent_rules(settings), gateway_rules(settings)
    environment = process_environment()
    local = LocalWorkspace.open(
        settings.root, settings.home, gateway=gateway, agent=agent, environment=environment
    )
    stack.callback(local.close)
    git = git_tools(Git(local.tree, environment, _ReadOnly(settings)))
    return local, [
        *workspace_tools(local),
        *execution_tools(settings, agent, local, partial(_tell, events)),
        *(tool for tool in git if not tool.writes),
    ]


def _tell(events: EventLog, text: str, caller: Caller) -> None:
    notice = Notice(level="warning", text=text)
    events.emit(notice, trace_id=caller.trace_id, parent=caller.parent)


@dataclass(frozen=True, slots=True)
class _ReadOnly:
    """A cage in which nothing can be written: what a repository configures may run, and no more."""

    settings: Settings

    def enter(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        # Which layer works is found out when the first command asks, not at start.
        root, layer = self.settings.root.resolve(), choose(self.settings.sandbox)
        above = next((place / ".git" for place in root.parents if (place / ".git").exists()), None)
        cage = Sandbox(root, layer, read_only=True, readable=(above,) if above else ())
        return cage.present().enter(argv, cwd, env)


def plugin_tools() -> list[Tool]:
    """Return the tools of other packages; looking for them takes time, so not on the loop."""
    return [tool for point in plugins.installed("tools").values() for tool in plugins.load(point)]
