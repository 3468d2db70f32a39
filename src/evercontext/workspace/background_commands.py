"""Commands that go on while the conversation does: start, look at their output, stop them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import monotonic

from evercontext.domain.tool import Arguments, Caller, Door, Effect, Tool, ToolResult
from evercontext.errors import EverContextError, InvalidArguments, NotFound, PolicyError
from evercontext.workspace.check_counts import plain
from evercontext.workspace.command_runner import CommandOutcome, CommandRunner
from evercontext.workspace.generated_files import installs
from evercontext.workspace.parameter_schema import parameters, string

MOST_AT_ONCE = 8
LONGEST_SECONDS = 12 * 3600.0
FIRST_LOOK = 1.0
"""Seconds after which a command that still runs is left to itself."""
MOST_OUTPUT = 200_000
"""Bytes of each command's output that are kept: the newest ones."""
_ENTRANCES = (Door.RUN, Door.CHAT)


@dataclass(slots=True)
class BackgroundCommand:
    """One command, running or ended."""

    id: str
    line: str
    session: str | None
    work: asyncio.Task[CommandOutcome]
    started: float = field(default_factory=monotonic)
    pieces: deque[bytes] = field(default_factory=deque)
    size: int = 0
    unread: int = 0
    """Bytes that came since somebody looked."""
    stopped: bool = False
    ended: float | None = None

    def take(self, _stream: str, data: bytes) -> None:
        """Keep output, and let go of the oldest where it is too much."""
        self.pieces.append(data)
        self.size += len(data)
        self.unread += len(data)
        while self.size > MOST_OUTPUT and len(self.pieces) > 1:
            self.size -= len(self.pieces.popleft())

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


class BackgroundCommands:
    """The commands of this process that nobody waits for; they end with their session."""

    def __init__(self, runner: CommandRunner) -> None:
        # What others change meanwhile could not be told from what such a command changes. What is
        # moved away when it is stopped is said at the next start: the screen may be gone by then.
        self._runner, self._tell = replace(runner, recorder=None, tell=None), runner.tell
        self._commands: dict[str, BackgroundCommand] = {}
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
        command = self._commands[id] = BackgroundCommand(id, line, caller.session, work)
        work.add_done_callback(lambda _: setattr(command, "ended", monotonic()))
        await asyncio.wait({work}, timeout=FIRST_LOOK)
        if work.done() and isinstance(problem := work.exception(), EverContextError):
            del self._commands[id]
            raise problem
        return command

    async def _run(self, id: str, line: str, caller: Caller) -> CommandOutcome:
        def take(stream: str, data: bytes) -> None:
            self._commands[id].take(stream, data)

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

    def find(self, id: str, session: str | None) -> BackgroundCommand:
        """Return a command of this session; ``NotFound`` if there is none of that name."""
        command = self._commands.get(id.removeprefix("#"))
        if command is None or command.session != session:
            raise NotFound(f"there is no background command {id[:20]!r}", fix="List them")
        return command

    def of(self, session: str | None) -> list[BackgroundCommand]:
        """Return the commands of a session, oldest first."""
        return [command for command in self if command.session == session]

    async def stop(self, command: BackgroundCommand) -> None:
        """End a command and everything it started."""
        command.stopped = command.stopped or command.running
        command.work.cancel()
        await asyncio.wait({command.work})

    async def stop_session(self, session: str | None) -> None:
        """End what a session started; it is over."""
        await asyncio.gather(*(self.stop(command) for command in self.of(session)))
        for command in self.of(session):
            del self._commands[command.id]

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(self.stop(command) for command in self))


def background_tools(commands: BackgroundCommands) -> list[Tool]:
    """Return ``command_output`` and ``stop_command``."""
    return [_output_tool(commands), _stop_tool(commands)]


def started_result(command: BackgroundCommand) -> ToolResult:
    """Return what the model is told of a command that was just started."""
    text = command.output(new=True)
    lines = [f"$ {command.line}", text, f"[background command {command.id}: {command.status()}]"]
    if command.running:
        lines.append(f"command_output with id {command.id} shows more; stop_command ends it")
    return ToolResult("\n".join(line for line in lines if line), {"background": command.id})


def _output_tool(commands: BackgroundCommands) -> Tool:
    async def run(arguments: Arguments, caller: Caller) -> ToolResult:
        id = arguments.get("id")
        if not id:
            rows = [f"{c.id}  {c.status()}  {c.line}" for c in commands.of(caller.session)]
            return ToolResult("\n".join(rows) or "no command runs in the background")
        command = commands.find(id, caller.session)
        text = command.output(new=True) or "(nothing new)"
        return ToolResult(f"{text}\n[{command.status()}]", {"running": command.running})

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
        command = commands.find(arguments["id"], caller.session)
        if not command.running:
            raise InvalidArguments(f"command {command.id} {command.status()} already")
        await commands.stop(command)
        text = command.output(new=True)
        return ToolResult("\n".join(part for part in (text, f"[{command.status()}]") if part))

    return Tool(
        name="stop_command",
        description="Stop a background command and everything it started.",
        arguments=parameters({"id": string("Of the command.", least=1)}, required=["id"]),
        # It ends only what run_command began in this session.
        effects=Effect.READ,
        run=run,
    )
