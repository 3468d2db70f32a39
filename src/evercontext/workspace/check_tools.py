"""Define the tools that run the project's checks and commands, in a sandbox.

A tool reports what the command said and how it ended. Whether that is success is read from the
exit code and the counts, never from words.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from evercontext.domain.tool import (
    Arguments,
    Caller,
    CommandAccess,
    Effect,
    FileChange,
    Tool,
    ToolResult,
)
from evercontext.errors import InvalidArguments, PathEscape
from evercontext.process.sandbox import Layer, limitation
from evercontext.process.system_paths import READ_FIX
from evercontext.workspace.background_commands import (
    BackgroundCommands,
    started_result,
)
from evercontext.workspace.check_counts import counts, plain, spell, tail
from evercontext.workspace.command_runner import CommandOutcome, CommandRunner
from evercontext.workspace.failures.failure import CodeLine, Failure
from evercontext.workspace.failures.parse import read_failures, unreadable_failure
from evercontext.workspace.generated_files import HINT, READ_ONLY, installs
from evercontext.workspace.parameter_schema import choice, integer, parameters, string, strings
from evercontext.workspace.project_commands import Command, Kind, ProjectCommands
from evercontext.workspace.read_only_commands import only_looks

DEFAULT_SECONDS = 120
LONGEST_SECONDS = 600
_OFFLINE = re.compile(
    r"could not resolve|name resolution|name or service not known|network is unreachable|EAI_AGAIN"
    r"|ENOTFOUND|ENETUNREACH|connection broken by|establish a new connection|dns error",
    re.IGNORECASE,
)
_NO_NETWORK = (
    "sandbox: this command had no network. If it needs it, call run_command again with"
    " access=network: the user is asked, unless a rule such as network({example}) allows it"
)
_NO_WRITE = (
    "sandbox: outside the project commands can write nothing. If it must, call run_command again"
    " with access=outside: the user is asked"
)
_ABSOLUTE = re.compile(r"(?<![\w.~/-])/[^\s\"'`:;,()\[\]<>]+")
_REFUSED_WRITE = re.compile(r"read-only file system|permission denied|EROFS|EACCES", re.IGNORECASE)

_DESCRIPTIONS: dict[Kind, str] = {
    "lint": "Run the project's linter in a sandbox without network; report its exit code.",
    "test": "Run the project's tests in a sandbox without network; report exit code and counts.",
    "format": "Run the project's formatter in a sandbox; its changes can be undone.",
}


@dataclass(frozen=True, slots=True)
class Checks:
    """The commands that the user configured; what is unset is detected."""

    lint: str | None = None
    test: str | None = None
    format: str | None = None

    def configured(self, kind: Kind) -> str | None:
        """Return the command line of this kind, if the user gave one."""
        line: str | None = getattr(self, kind)
        return line


def check_tools(
    runner: CommandRunner,
    checks: Checks | None = None,
    background: BackgroundCommands | None = None,
) -> list[Tool]:
    """Return ``run.lint``, ``run.test``, ``run.format`` and ``run_command``."""
    chosen = checks or Checks()
    kinds: tuple[Kind, ...] = ("lint", "test", "format")
    running = background or BackgroundCommands(runner)
    return [
        *(_check(runner, chosen, kind) for kind in kinds),
        _run_command(runner, running),
    ]


def _check(runner: CommandRunner, checks: Checks, kind: Kind) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        line = arguments.get("command") or checks.configured(kind)
        paths = _checked_paths(runner.root, arguments.get("paths", []))
        directory = arguments.get("directory", ".")
        place = runner.root / _checked_paths(runner.root, [directory])[0]
        outer = None if place == runner.root else runner.root
        project = ProjectCommands(place, runner.environment, outer)
        commands = [split(line)] if line else await asyncio.to_thread(project.commands, kind)
        if not commands:
            text = f"no {kind} command found in this project: nothing was checked"
            return ToolResult(text, {"passed": False, "runs": []})
        outcomes = [
            await runner.run(
                _with_paths(command, paths),
                caller,
                timeout=_seconds(arguments),
                cwd=place,
                looks_only=kind in ("lint", "test"),
            )
            for command in commands
        ]
        return _result(outcomes, runner.root, counted=kind == "test", directory=directory)

    effects = Effect.EXECUTE | Effect.WRITE if kind == "format" else Effect.EXECUTE
    return Tool(
        name=f"run.{kind}",
        description=_DESCRIPTIONS[kind],
        arguments=parameters(
            {
                "paths": strings("Only these files or directories, relative to the root."),
                "command": string("Instead of the project's own: a program and its arguments."),
                "directory": string("A package of the project to run in, instead of the root."),
                "timeout": integer(f"Seconds (default {DEFAULT_SECONDS}).", minimum=1),
            },
            required=[],
        ),
        effects=effects,
        run=run,
        timeout=LONGEST_SECONDS * 2,
    )


def _run_command(runner: CommandRunner, background: BackgroundCommands) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        line = arguments["command"]
        if arguments.get("background"):
            return started_result(background, await background.start(line, caller), caller)
        outcome = await runner.run(
            ("sh", "-c", line),
            caller,
            timeout=_seconds(arguments),
            looks_only=only_looks(line),
            installs=caller.approved and installs(line),
        )
        return _result([outcome], runner.root, counted=False)

    return Tool(
        name="run_command",
        description=(
            "Run a shell command in the project root, in a sandbox: no network, nothing outside "
            "the project is writable, nor .git and other protected names in it. Report its exit "
            "code and output, and what the sandbox of this machine cannot offer if it failed."
        ),
        arguments=parameters(
            {
                "command": string("The command line, for sh.", least=1),
                "access": choice(
                    "Ask the user for more: network (to install packages, to fetch), or outside "
                    "the sandbox. Only where the command cannot do without.",
                    [level.value for level in CommandAccess],
                ),
                "background": {
                    "type": "boolean",
                    "description": "Do not wait for its end: a server, a watcher.",
                },
                "timeout": integer(f"Seconds (default {DEFAULT_SECONDS}).", minimum=1),
            },
            required=["command"],
        ),
        effects=Effect.EXECUTE | Effect.WRITE,
        run=run,
        aliases=("runCommand", "shell"),
        timeout=LONGEST_SECONDS * 2,
    )


def split(line: str) -> Command:
    """Return a command line as arguments, without a shell."""
    try:
        argv = tuple(shlex.split(line))
    except ValueError as error:
        raise InvalidArguments(f"the command cannot be read: {error}") from None
    if not argv:
        raise InvalidArguments("the command is empty")
    return argv


def passed(outcome: CommandOutcome, *, counted: bool) -> bool:
    """Tell whether a check succeeded; a test run that ran no test did not."""
    if not outcome.completed.ok:
        return False
    numbers = counts(_output(outcome)) if counted else {}
    return not numbers.get("failed") and not (numbers and not any(numbers.values()))


def _seconds(arguments: Arguments) -> float:
    return float(min(arguments.get("timeout", DEFAULT_SECONDS), LONGEST_SECONDS))


def _checked_paths(root: Path, paths: Sequence[str]) -> list[str]:
    """Refuse what a program could take for an option, and what is outside."""
    for path in paths:
        name = path.split("::")[0]  # pytest's way to name one test
        if path.startswith("-") or not name:
            raise InvalidArguments(f"not a path: {path[:80]!r}")
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise PathEscape("path escapes root")
        if not (root / name).exists():
            raise InvalidArguments(f"no such file or directory: {path[:80]!r}")
    return list(paths)


def _with_paths(command: Command, paths: Sequence[str]) -> Command:
    if not paths:
        return command
    everything = {".", "./..."}
    return (*(part for part in command if part not in everything), *paths)


def _result(
    outcomes: Sequence[CommandOutcome], root: Path, *, counted: bool, directory: str = "."
) -> ToolResult:
    runs = [_data(outcome, root, counted, directory) for outcome in outcomes]
    good = all(run["passed"] for run in runs)
    changes = _last_of_each([change for outcome in outcomes for change in outcome.changes])
    text = "\n\n".join(
        _text(outcome, run, root) for outcome, run in zip(outcomes, runs, strict=True)
    )
    code = next((run["exit_code"] for run in runs if run["exit_code"]), 0)
    return ToolResult(text, {"passed": good, "exit_code": code, "runs": runs}, changes=changes)


def _data(outcome: CommandOutcome, root: Path, counted: bool, directory: str) -> dict[str, Any]:
    done = outcome.completed
    good = passed(outcome, counted=counted)
    return {
        "command": list(done.argv),
        "exit_code": done.exit_code,
        "passed": good,
        "timed_out": done.timed_out,
        "truncated": done.truncated,
        "reached": done.reached,
        "seconds": round(done.duration, 3),
        "counts": counts(_output(outcome)),
        "failures": [] if good else _failures(outcome, root, directory),
        "sandbox": str(outcome.layer),
        "access": str(outcome.access),
        "output": tail(_output(outcome)),
        "changed": [change.path for change in outcome.changes if change.undoable],
        "not_undoable": list(outcome.not_undoable),
        "changed_meanwhile": list(outcome.unsure),
        "moved_away": list(outcome.put_away.places),
        "touched": {folder.folder: folder.files for folder in outcome.touched},
    }


def _failures(outcome: CommandOutcome, root: Path, directory: str) -> list[dict[str, Any]]:
    """What went wrong, in one shape whatever tool said it; paths are relative to the root."""
    output = _output(outcome)
    failures = read_failures(output, str(root)) or (
        unreadable_failure(outcome.completed.argv, output),
    )
    return [_from_root(failure, root, directory).to_json() for failure in failures]


def _from_root(failure: Failure, root: Path, directory: str) -> Failure:
    """A tool that ran in a package names files as seen from there."""

    def seen(file: str) -> str:
        there = f"{directory}/{file}"
        return there if directory != "." and (root / there).exists() else file

    frames = tuple(CodeLine(seen(frame.file), frame.line) for frame in failure.frames)
    return replace(failure, file=failure.file and seen(failure.file), frames=frames)


def _text(outcome: CommandOutcome, run: dict[str, Any], root: Path) -> str:
    output = _output(outcome)
    lines = [f"$ {shlex.join(outcome.completed.argv)}", run["output"], _ending(outcome)]
    if run["counts"]:
        lines.append(spell(run["counts"]))
    if run["changed"]:
        lines.append(f"changed: {', '.join(run['changed'][:50])}")
    if run["not_undoable"]:
        lines.append(f"changed, and cannot be undone: {', '.join(run['not_undoable'][:20])}")
    if run["changed_meanwhile"]:
        names = ", ".join(run["changed_meanwhile"][:20])
        lines.append(f"changed meanwhile, likely by the user: {names}")
    if outcome.touched:
        lines.append("installed or built; undo moves new folders away, single files stay:")
        lines += [f"  {folder.text}" for folder in outcome.touched]
    lines += [outcome.put_away.text, _refusal(outcome)]
    if outcome.unseen:
        names = ", ".join(outcome.unseen)
        lines.append(f"sandbox: commands may not read {names}. If it is there: {READ_FIX}")
    lines += _refused_by_sandbox(outcome, output, root)
    if not outcome.completed.ok and (limits := limitation(outcome.layer)):
        lines.append(limits)
    return "\n".join(line for line in lines if line)


def _refused_by_sandbox(outcome: CommandOutcome, output: str, root: Path) -> list[str]:
    """Say what the sandbox kept from a command that failed, and how it can be opened."""
    if outcome.access is not CommandAccess.SANDBOX:
        return [f"[ran {outcome.access.phrase}]"]
    if outcome.completed.ok or outcome.layer is Layer.NONE:
        return []
    lines = []
    line = outcome.completed.argv[-1]
    # A quiet installer says only that it found nothing.
    if _OFFLINE.search(output) or installs(line):
        words = line.split()
        lines.append(_NO_NETWORK.format(example=f"{' '.join(words[:2])} *"))
    refused = (line for line in output.splitlines() if _REFUSED_WRITE.search(line))
    places = [path for line in refused for path in _ABSOLUTE.findall(line)]
    if not outcome.unseen and any(not Path(path).is_relative_to(root) for path in places):
        lines.append(_NO_WRITE)
    return lines


def _refusal(outcome: CommandOutcome) -> str:
    """Say why a command could not write among installed programs, if that may be what failed."""
    output = "" if outcome.completed.ok else _output(outcome)
    if not READ_ONLY.search(output):
        return ""
    names = sorted({PurePosixPath(path).name for path in outcome.held})
    named = [name for name in names if name in output]
    return f"[{HINT.format(names=' and '.join(named))}]" if named else ""


def _ending(outcome: CommandOutcome) -> str:
    done = outcome.completed
    if done.timed_out:
        return f"[stopped: not finished after {done.duration:.0f} s]"
    if done.reached:
        return f"[stopped: too many {done.reached}]".replace("many memory", "much memory")
    if done.truncated:
        return "[stopped: too much output]"
    if done.signal:
        return f"[ended by signal {done.signal}]"
    return f"[exit code {done.exit_code}]"


def _output(outcome: CommandOutcome) -> str:
    done = outcome.completed
    return "\n".join(part for part in (plain(done.stdout), plain(done.stderr)) if part.strip())


def _last_of_each(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """Join what several commands did to one file."""
    joined: dict[str, FileChange] = {}
    for change in changes:
        first = joined.get(change.path, change)
        modes = [each.modes for each in (first, change) if each.modes]
        mode = (modes[0][0], modes[-1][1]) if modes else None
        undoable = first.undoable and change.undoable
        joined[change.path] = FileChange(change.path, first.before, change.after, mode, undoable)
    return tuple(joined.values())
