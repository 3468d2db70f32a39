"""The entrance: a static table of commands, each loaded only when it is asked for.

Every way out leaves through ``failure.report``, so that a person sees one line and a script sees
one of the documented exit codes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from evercontext import __version__
from evercontext.cli import failure
from evercontext.cli.messages import language, translate
from evercontext.cli.shorthand import expand
from evercontext.process.fast_exit import leave

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """One command, described without loading it."""

    section: str
    module: str
    help: str


COMMANDS = {
    "chat": CommandEntry("Work", "chat.command", "Talk to the agent about a project."),
    "run": CommandEntry("Work", "run", "Do one task in a project, unattended."),
    "plan": CommandEntry("Work", "plan", "Plan a task without doing it."),
    "fix": CommandEntry("Work", "fix", "Run the checks and fix what needs no model."),
    "undo": CommandEntry("Work", "undo", "Take back what a task changed."),
    "search": CommandEntry(
        "Work", "search", "Find code by what it does, by its name, or by an issue's text."
    ),
    "code": CommandEntry(
        "Work", "code", "Ask who defines, calls, imports or implements a name; a map."
    ),
    "index": CommandEntry("Work", "index", "Bring the code index up to date; --watch keeps it so."),
    "evaluate": CommandEntry("Work", "evaluate", "Judge documents by a rubric."),
    "improve": CommandEntry("Work", "improve", "Rewrite a document until it passes."),
    "serve": CommandEntry(
        "Serve", "serve", "Serve the project's tools over REST and MCP, until Ctrl-C."
    ),
    "console": CommandEntry("Serve", "console", "Open the web console of the server that runs."),
    "mcp": CommandEntry("Serve", "mcp", "Serve the project's tools to an MCP client over stdio."),
    "acp": CommandEntry("Serve", "acp", "Serve the agent to an editor over stdio."),
    "sessions": CommandEntry("Look", "sessions", "Find past conversations: list, search, show."),
    "memory": CommandEntry(
        "Look", "memory", "Add, search, list, forget, export and import memories."
    ),
    "tools": CommandEntry("Look", "tools", "Find tools by what they do, and call them."),
    "context": CommandEntry("Look", "context", "See what would be sent to the model for a task."),
    "trace": CommandEntry("Look", "trace", "See what happened: list, show, tail."),
    "kpi": CommandEntry("Look", "kpi", "See how well it has been going."),
    "doctor": CommandEntry("Look", "doctor", "Check this machine; say how to fix what is missing."),
    "setup": CommandEntry(
        "Set up", "setup", "Choose a model: a key, a running Ollama, or a small one."
    ),
    "model": CommandEntry("Set up", "model", "See, choose, fetch and test models."),
    "config": CommandEntry("Set up", "config", "See and change settings; trust a project's file."),
    "servers": CommandEntry("Set up", "servers", "Add, test and import outside tool servers."),
    "projects": CommandEntry("Set up", "router_projects", "Say which servers belong together."),
    "tokens": CommandEntry("Set up", "router_tokens", "Let other programs use the tool router."),
    "skills": CommandEntry(
        "Set up", "skills", "See what the agent can look up; trust a project's."
    ),
    "hooks": CommandEntry(
        "Set up", "agent_hooks", "See what runs around the agent's work; trust a project's."
    ),
    "git-hooks": CommandEntry("Set up", "git_hooks", "Let git tell the index about commits."),
    "users": CommandEntry(
        "Set up", "users", "Say who may use a shared database, and what in which project."
    ),
    "groups": CommandEntry("Set up", "groups", "Put users of a shared database into groups."),
    "db": CommandEntry(
        "Set up", "db", "See the database, bring it up to date, copy it into another."
    ),
    "completion": CommandEntry("Set up", "completion", "Print the completion script of a shell."),
}
ALIASES = {"hook": "git-hooks"}
"""Former name -> present name: what scripts and installed hooks call goes on working."""


class LazyGroup(click.Group):
    """A group whose help and completion come from the table alone."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        entry = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        command: click.Command = import_module(f"evercontext.cli.{entry.module}").command
        if language() != "en":
            from evercontext.cli.help_language import translate_help

            translate_help(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the ones that are near."""
        known = COMMANDS.keys() | ALIASES.keys()
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that went away is ours to handle, not Click's."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as problem:
            raise failure.ReaderLeft from problem

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section."""
        width = max(map(len, COMMANDS))
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            rows = [
                (name.ljust(width), translate(entry.help))
                for name, entry in COMMANDS.items()
                if entry.section == section
            ]
            with formatter.section(translate(section)):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names without loading any command."""
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        if incomplete.startswith("-"):
            # The options of the chat work without naming it.
            chat = self.get_command(ctx, "chat")
            options += click.Command.shell_complete(chat, ctx, incomplete) if chat else []
        return [CompletionItem(name, help=COMMANDS[name].help) for name in names] + options


FIRST_STEPS = """\b
First steps
  evercontext setup                      choose a model: a key, Ollama, or a small one
  evercontext doctor                     is everything there, and which model is used?
  evercontext                            talk about the project you are in
  evercontext "Add a test"               the same, beginning with this
  evercontext -p "What does it do?"      answer once and exit; also reads a pipe
  evercontext -c                         go on with the last session; -r chooses one
  evercontext run "Add a test"           one task, unattended; undo takes it back

The options of `chat` (-p, -c, -r, -m ...) work without naming it.
"""


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    epilog=FIRST_STEPS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="evercontext %(version)s")
@click.pass_context
def command(ctx: click.Context) -> Any:
    """EverContext: a local-first coding agent.

    It plans, edits inside one project, shows every change, and writes down what it did.
    """
    if ctx.invoked_subcommand is not None:
        return None
    if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        return import_module("evercontext.cli.chat.command").command.main([], standalone_mode=False)
    click.echo(ctx.get_help())
    return None


def main(arguments: Sequence[str] | None = None, program: str = "evercontext") -> NoReturn:
    """Run the command line and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    leave(_code_of(words, program))


def nebula() -> NoReturn:
    """The second console script: the same commands, by the name of the agent."""
    main(sys.argv[1:] or ["chat"], program="nebula")


def _code_of(arguments: list[str], program: str) -> int:
    signal.signal(signal.SIGTERM, _terminate)
    _fill_closed_descriptors()
    _never_fail_to_print()
    try:
        if language() != "en":
            from evercontext.cli.help_language import translate_help

            translate_help(command, below=False)
        words = expand(arguments, COMMANDS.keys() | ALIASES.keys())
        code: Any = command.main(words, prog_name=program, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except Exception as problem:  # noqa: BLE001 - the last line of defence against a traceback
        return failure.report(problem, arguments)
    except KeyboardInterrupt as stopped:
        return failure.report(stopped, arguments)
    finally:
        failure.drop_unwritable()


def _terminate(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _fill_closed_descriptors() -> None:
    # Python has no stream where one was closed (`2>&-`), and the next file that is opened would
    # get its number: a database is no place to print to.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            mode = "w" if number else "r"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - stays
            setattr(sys, name, stream)


def _never_fail_to_print() -> None:
    # A terminal in another encoding shows an escape, where it would otherwise stop the task.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
