"""Commands that go on while the conversation does: start, look at their output, stop them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from evercontext.domain.tool import (
    Arguments,
    Caller,
    Door,
    Effect,
    FileChange,
    Mode,
    Tool,
    ToolResult,
)
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import EverContextError, InvalidArguments, NotFound, PolicyError
from evercontext.workspace.check_counts import plain
from evercontext.workspace.command_runner import (
    CommandOutcome,
    CommandRunner,
    Recorded,
    Recorder,
)
from evercontext.workspace.generated_files import installs
from evercontext.workspace.parameter_schema import parameters, string

MOST_AT_ONCE = 8
LONGEST_SECONDS = 12 * 3600.0
FIRST_LOOK = 1.0
"""Seconds after which a command that still runs is left to itself."""
MOST_OUTPUT = 200_000
"""Bytes of each command's output that are kept: the newest ones."""
COUNTED_APART = "what changes from now on may be its work or yours, and is listed apart"
_ENTRANCES = (Door.RUN, Door.CHAT)


@dataclass(slots=True)
class BackgroundCommand:
    """One command, running or ended."""

    id: str
    line: str
    caller: Caller
    work: asyncio.Task[CommandOutcome]
    started: float = field(default_factory=monotonic)
    pieces: deque[bytes] = field(default_factory=deque)
    size: int = 0
    unread: int = 0
    """Bytes that came since somebody looked."""
    stopped: bool = False
    ended: float | None = None

    @property
    def owner(self) -> str:
        """Return the session that it belongs to, or the task where there is no session."""
        return _owner(self.caller)

    def take(self, _stream: str, data: bytes) -> None:
        """Keep output, and let go of the oldest where it is too much."""
        self.pieces.append(data)
        self.size += len(data)
        self.unread += len(data)
        while self.size > MOST_OUTPUT and len(self.pieces) > 1:
            self.size -= len(self.pieces.popleft())

    @property
    def exit_code(self) -> int | None:
        """Return how it ended, if it ended by itself."""
        ended = not (self.running or self.stopped or self.work.cancelled())
        done = ended and self.work.exception() is None
        return self.work.result().completed.exit_code if done else None

    @property
    def running(self) -> bool:
        """Tell whether it has not ended."""
        return not self.work.done()

    def output(self, *, new: bool) -> str:
        """Return what it wrote: all that is kept, or only what nobody has looked at."""
        data = b"".join(self.pieces)
        if new:
            data = data[max(0, len(data) - self.unread) :] if self.unread else b""
        self.unread = 0
        return plain(data)

    def status(self) -> str:
        """Say in a few words how it stands."""
        seconds = (self.ended or monotonic()) - self.started
        if self.running:
            return f"running for {seconds:.0f} s"
        if self.stopped or self.work.cancelled():
            return f"stopped after {seconds:.0f} s"
        if problem := self.work.exception():
            return f"did not run: {problem}"
        outcome = self.work.result()
        code, moved = outcome.completed.exit_code, outcome.put_away.text.replace("\n", "; ")
        end = f"ended after {seconds:.0f} s with exit code {code}"
        return f"{end}; {moved}" if moved else end


@dataclass(frozen=True, slots=True)
class BackgroundReport:
    """What commands in the background did to files, as far as a task can know."""

    changes: tuple[FileChange, ...] = ()
    running: tuple[BackgroundCommand, ...] = ()
    """Those that go on: what they change later is accounted for apart."""
    stopped: tuple[BackgroundCommand, ...] = ()
    """Those that were ended because the task is over."""
    failed: tuple[BackgroundCommand, ...] = ()
    """Those of the task that ended badly by themselves."""

    @property
    def note(self) -> str:
        """Say what is not known, or was ended; nothing where there is nothing to say."""
        parts = []
        if names := _named(self.running):
            parts.append(f"{names} still runs: {COUNTED_APART}")
        if names := _named(self.stopped):
            parts.append(f"{names} was stopped at the end of the task")
        parts += [f"{_named([command])} {command.status()}" for command in self.failed]
        return "; ".join(parts)


class BackgroundCommands:
    """The commands of this process that nobody waits for; they end with their session.

    What changes in files while one runs is accounted to the task at work in its session. Between
    tasks it may as well be the user's work: it is journalled apart, and counted for nobody.
    """

    def __init__(self, runner: CommandRunner) -> None:
        # What is moved away when it is stopped is said at the next start: the screen may be gone
        # by then.
        self._runner, self._tell = replace(runner, recorder=None, tell=None), runner.tell
        self._recorder = runner.recorder
        self._commands: dict[str, BackgroundCommand] = {}
        self._at_work: dict[str, Caller] = {}
        """The task that runs in a session."""
        self._number = 0

    def __iter__(self) -> Iterator[BackgroundCommand]:
        return iter(self._commands.values())

    async def start(self, line: str, caller: Caller) -> BackgroundCommand:
        """Start a command and return it once it ended or ran for a moment."""
        if caller.door not in _ENTRANCES:
            raise PolicyError("only a task or a conversation has commands in the background")
        if sum(command.running for command in self) >= MOST_AT_ONCE:
            raise PolicyError(
                f"{MOST_AT_ONCE} commands run in the background already", fix="Stop one of them"
            )
        self._number += 1
        id = str(self._number)
        work = asyncio.create_task(self._run(id, line, caller))
        command = self._commands[id] = BackgroundCommand(id, line, caller, work)
        work.add_done_callback(lambda _: setattr(command, "ended", monotonic()))
        await asyncio.wait({work}, timeout=FIRST_LOOK)
        if work.done() and isinstance(problem := work.exception(), EverContextError):
            del self._commands[id]
            raise problem
        return command

    async def _run(self, id: str, line: str, caller: Caller) -> CommandOutcome:
        def take(stream: str, data: bytes) -> None:
            self._commands[id].take(stream, data)

        async with self._watched(line, caller):
            outcome = await self._runner.run(
                ("sh", "-c", line),
                caller,
                timeout=LONGEST_SECONDS,
                installs=caller.approved and installs(line),
                on_output=take,
            )
        if outcome.put_away.text and self._tell:
            self._tell(f"background command {id}: {outcome.put_away.text}", caller)
        return outcome

    @contextlib.asynccontextmanager
    async def _watched(self, line: str, caller: Caller) -> AsyncIterator[None]:
        """Account for what changes while a command runs, however it ends."""
        if self._recorder is None or caller.mode is not Mode.AGENT:
            yield
            return
        await self._recorder.watch()
        try:
            yield
        finally:
            # Stopped twice, it is accounted for nevertheless.
            settling = asyncio.ensure_future(self._settle(line, caller, self._recorder))
            try:
                await asyncio.shield(settling)
            except asyncio.CancelledError:
                await settling
                raise

    async def _settle(self, line: str, caller: Caller, recorder: Recorder) -> None:
        at_work = self._at_work.get(_owner(caller))
        await recorder.account(at_work or caller, doubt="" if at_work else line)
        await recorder.end_watch()

    async def begin_task(self, caller: Caller) -> None:
        """Account for what changed since the last task of this session: a new one begins."""
        await self.account_between(_owner(caller))
        if caller.mode is Mode.AGENT:
            self._at_work[_owner(caller)] = caller

    async def account_between(self, session: str) -> None:
        """Account for what changed in a session while no task of it was at work."""
        waiting = [command for command in self.of(session) if command.running]
        if waiting and self._recorder and session not in self._at_work:
            await self._recorder.account(waiting[0].caller, doubt=waiting[0].line)

    async def report(self, caller: Caller) -> BackgroundReport:
        """Return what changed in the background that the task was not told of."""
        if self._recorder is None or caller.mode is not Mode.AGENT:
            return BackgroundReport()
        await self._recorder.account(caller)
        recorded = self._recorder.untold(caller)
        mine = self.of(_owner(caller))
        running = tuple(command for command in mine if command.running)
        failed = tuple(c for c in mine if c.exit_code and c.caller.trace_id == caller.trace_id)
        return BackgroundReport(recorded.changes, running, failed=failed)

    def untold(self, caller: Caller) -> Recorded | None:
        """Return what commands that ended since changed, if this task was not told of it."""
        if self._recorder is None or caller.mode is not Mode.AGENT:
            return None
        return self._recorder.untold(caller)

    async def end_task(self, caller: Caller) -> BackgroundReport:
        """Return what changed in the background; what no session goes on with is ended first."""
        stopped: tuple[BackgroundCommand, ...] = ()
        if caller.session is None:
            stopped = tuple(command for command in self.of(_owner(caller)) if command.running)
            await asyncio.gather(*map(self.stop, stopped))
        return replace(await self.report(caller), stopped=stopped)

    def leave_task(self, caller: Caller) -> None:
        """Take note that the task is over."""
        self._at_work.pop(_owner(caller), None)

    def find(self, id: str, session: str) -> BackgroundCommand:
        """Return a command of this session; ``NotFound`` if there is none of that name."""
        command = self._commands.get(id.removeprefix("#"))
        if command is None or command.owner != session:
            raise NotFound(f"there is no background command {id[:20]!r}", fix="List them")
        return command

    def of(self, session: str) -> list[BackgroundCommand]:
        """Return the commands of a session, oldest first."""
        return [command for command in self if command.owner == session]

    async def stop(self, command: BackgroundCommand) -> None:
        """End a command and everything it started."""
        command.stopped = command.stopped or command.running
        command.work.cancel()
        await asyncio.wait({command.work})

    async def stop_session(self, session: str) -> None:
        """End what a session started; it is over."""
        await asyncio.gather(*(self.stop(command) for command in self.of(session)))
        for command in self.of(session):
            del self._commands[command.id]

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(self.stop(command) for command in self))


def _owner(caller: Caller) -> str:
    return caller.session or caller.trace_id


def _named(commands: Sequence[BackgroundCommand]) -> str:
    lines = (f"{command.id} ({escaped_line(command.line, 60)})" for command in commands)
    return f"background command {', '.join(lines)}" if commands else ""


def background_tools(commands: BackgroundCommands) -> list[Tool]:
    """Return ``command_output`` and ``stop_command``."""
    return [_output_tool(commands), _stop_tool(commands)]


def started_result(
    commands: BackgroundCommands, command: BackgroundCommand, caller: Caller
) -> ToolResult:
    """Return what the model is told of a command that was just started."""
    text = command.output(new=True)
    lines = [f"$ {command.line}", text, f"[background command {command.id}: {command.status()}]"]
    if command.running:
        lines.append(f"command_output with id {command.id} shows more; stop_command ends it")
    return _result(commands, caller, lines, {"background": command.id})


def _result(
    commands: BackgroundCommands, caller: Caller, lines: Sequence[str], data: object = None
) -> ToolResult:
    """Return these lines with the changes of commands that ended since."""
    recorded = commands.untold(caller)
    shown = [line for line in lines if line]
    changed = [change.path for change in recorded.changes if change.undoable] if recorded else []
    if changed:
        shown.append(f"changed: {', '.join(changed[:50])}")
    if recorded and recorded.not_undoable:
        shown.append(f"changed, and cannot be undone: {', '.join(recorded.not_undoable[:20])}")
    return ToolResult("\n".join(shown), data, changes=recorded.changes if recorded else ())


def _output_tool(commands: BackgroundCommands) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        id = arguments.get("id")
        if not id:
            rows = [f"{c.id}  {c.status()}  {c.line}" for c in commands.of(_owner(caller))]
            return ToolResult("\n".join(rows) or "no command runs in the background")
        command = commands.find(id, _owner(caller))
        lines = [command.output(new=True) or "(nothing new)", f"[{command.status()}]"]
        return _result(commands, caller, lines, {"running": command.running})

    return Tool(
        name="command_output",
        description="Show what a background command wrote since the last look; without an id, "
        "list them.",
        arguments=parameters({"id": string("Of the command, as it was started.")}, required=[]),
        effects=Effect.READ,
        run=run,
    )


def _stop_tool(commands: BackgroundCommands) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        command = commands.find(arguments["id"], _owner(caller))
        if not command.running:
            raise InvalidArguments(f"command {command.id} {command.status()} already")
        await commands.stop(command)
        lines = [command.output(new=True), f"[{command.status()}]"]
        return _result(commands, caller, lines)

    return Tool(
        name="stop_command",
        description="Stop a background command and everything it started.",
        arguments=parameters({"id": string("Of the command.", least=1)}, required=["id"]),
        # It ends only what run_command began in this session.
        effects=Effect.READ,
        run=run,
    )
