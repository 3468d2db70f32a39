"""Gather the tools that execute, from the settings."""

from __future__ import annotations

from evercontext.domain.tool import Tool
from evercontext.files.policy import FilePolicy
from evercontext.process.listening_ports import ports_of_servers
from evercontext.settings import Settings, process_environment
from evercontext.workspace.background_commands import BackgroundCommands
from evercontext.workspace.check_tools import Checks, check_tools
from evercontext.workspace.command_runner import CommandRunner, Recorder, Tell
from evercontext.workspace.http_tool import HttpPolicy, http_tool


def execution_tools(
    settings: Settings, policy: FilePolicy, recorder: Recorder, tell: Tell | None = None
) -> tuple[list[Tool], BackgroundCommands]:
    """Return the tools that execute something, and the commands that they leave running."""
    runner = CommandRunner(
        settings.root.resolve(),
        process_environment(),
        settings.home,
        settings.sandbox,
        policy,
        recorder,
        tell=tell,
        readable=settings.sandbox_read,
    )
    checks = Checks(settings.lint_cmd, settings.test_cmd, settings.format_cmd)
    configured = {settings.port, settings.router_port, settings.evaluator_port}

    def own_ports() -> frozenset[int]:
        # Asked at each request: a server may have started since.
        return ports_of_servers(settings.home) | configured

    background = BackgroundCommands(runner)
    tools = check_tools(runner, checks, background)
    return [*tools, http_tool(HttpPolicy(own_ports=own_ports))], background
