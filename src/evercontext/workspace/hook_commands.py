"""Run hooks: the user's own directly, a project's in the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from evercontext.domain.tool import Caller, Mode
from evercontext.events.log import EventLog
from evercontext.process.environment import filtered
from evercontext.process.run import run
from evercontext.settings import Hook, Settings
from evercontext.settings.build_file_policy import agent_rules
from evercontext.tools.hook_runner import Hooks, Ran
from evercontext.workspace.command_runner import CommandRunner, Recorder

SHELL = ("/bin/sh", "-c")
MOST_OUTPUT = 65_536


def open_hooks(
    settings: Settings,
    environment: Mapping[str, str],
    recorder: Recorder | None,
    events: EventLog,
) -> Hooks | None:
    """The hooks of the settings; nothing where none is configured."""
    if not settings.hooks:
        return None
    root = settings.root.resolve()
    variables = [f"{name}={root}" for name in ("EVERCONTEXT_PROJECT_DIR", "CLAUDE_PROJECT_DIR")]
    policy = agent_rules(settings)
    sandbox = CommandRunner(
        root,
        environment,
        settings.home,
        settings.sandbox,
        policy,
        recorder,
        readable=settings.sandbox_read,
    )

    async def run_hook(hook: Hook, stdin: bytes, caller: Caller) -> Ran:
        argv = ("env", *variables, *SHELL, hook.command)
        # What a repository brought runs in the sandbox, because the agent may write the scripts it
        # names; and where nothing may be written, that holds for everybody.
        if hook.origin == "project" or caller.mode is not Mode.AGENT:
            outcome = await sandbox.run(argv, caller, timeout=hook.timeout, stdin=stdin)
            return Ran(outcome.completed, outcome.changes)
        async with recorder.recording(caller) if recorder else nullcontext() as recorded:
            completed = await run(
                argv,
                cwd=root,
                timeout=hook.timeout,
                env=filtered(environment),
                stdin=stdin,
                max_output=MOST_OUTPUT,
            )
        return Ran(completed, recorded.changes if recorded else ())

    return Hooks(settings.hooks, run_hook, events, str(root))
