"""Manage a running child process: its pipes, its exit, and its descendants."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import SHUT_WR, socket
from typing import IO, Protocol

from evercontext.errors import ProcessProblem, ProgramMissing
from evercontext.process.environment import BARE

MARK = "EVERCONTEXT_CHILD"
"""Inherited by every descendant, so that one that left its group can still be found."""
DEATH = 5.0
"""Seconds that a supervisor gets to end its tree before it is killed itself."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a command: as it is, or through the supervisor of a sandbox."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    control: socket | None = None
    """Our end of a socket to the supervisor: closing it ends the whole tree."""
    theirs: socket | None = None
    """The supervisor's end, closed here as soon as it runs."""


@dataclass(frozen=True, slots=True)
class SupervisorReport:
    """What a supervisor says at the end."""

    exit_code: int
    reached: str | None
    """The ceiling that ended the command."""
    failed: str | None
    """Why the sandbox could not be closed; the command never ran."""


class Confinement(Protocol):
    """Whatever can turn a command into one that runs with limits."""

    def enter(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> AbstractContextManager[Launch]:
        """Yield the launch; what it needs lives until the child is gone."""
        ...


@contextlib.contextmanager
def bare(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[Launch]:
    """Yield a launch without any sandbox."""
    yield Launch(tuple(argv), {**env, MARK: secrets.token_hex(8)})


class Child:
    """A child with pipes. ``close`` ends it and its whole tree; use it as ``async with``."""

    def __init__(self, popen: subprocess.Popen[bytes], launch: Launch, stack: ExitStack) -> None:
        self.pid = popen.pid
        self.stdin: StreamWriter | None = None
        self.stdout = StreamReader()
        self.stderr = StreamReader()
        self._popen = popen
        self._launch = launch
        self._stack = stack
        self._transports: list[asyncio.BaseTransport] = []
        self._pidfd = _open_pidfd(popen.pid)
        self._closing: asyncio.Task[None] | None = None
        self.report: SupervisorReport | None = None
        self.finished = False
        """Set by who saw the child and its output end: nothing needs to be searched for then."""

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None before ``close``."""
        return self.report.exit_code if self.report else self._popen.returncode

    async def wait(self) -> None:
        """Wait until the child itself ended; its descendants may still live."""
        if self._pidfd is None:
            await asyncio.to_thread(self._popen.wait)
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._pidfd)

    async def feed(self, data: bytes) -> None:
        """Write ``data`` to the child's input and close it; a child that reads no more is fine."""
        if self.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(data)
            await self.stdin.drain()
        self.stdin.close()

    def kill_group(self) -> None:
        """Kill what still shares the child's process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the child and everything it started, as far as it can be found."""
        if self._launch.control is not None:
            with contextlib.suppress(OSError):
                self._launch.control.shutdown(SHUT_WR)
            return
        self.kill_group()
        if self.finished:
            return
        for pid in _marked(self._launch.env[MARK]):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    async def close(self) -> None:
        """Kill the tree, reap the child and give every descriptor back."""
        if self._closing is None:
            self.kill()
            self._closing = asyncio.get_running_loop().create_task(self._release())
        await asyncio.shield(self._closing)

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(DEATH):
                await self.wait()
        except TimeoutError:
            self.kill_group()
            await self.wait()
        for transport in self._transports:
            if isinstance(transport, asyncio.WriteTransport) and transport.get_write_buffer_size():
                transport.abort()  # nobody will read the rest
            transport.close()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:  # one whose start was cancelled belongs to no transport
                pipe.close()
        self._popen.wait()
        self.report = _read_report(self._launch.control)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        # Among this is the command's temporary directory, with as much in it as it liked to make.
        await asyncio.to_thread(self._stack.close)
        await asyncio.sleep(0)

    async def open_pipes(self) -> None:
        """Connect the streams; ``start`` does it."""
        loop = asyncio.get_running_loop()
        for reader, pipe in ((self.stdout, self._popen.stdout), (self.stderr, self._popen.stderr)):
            protocol = partial(asyncio.StreamReaderProtocol, reader)
            transport, _ = await loop.connect_read_pipe(protocol, _required(pipe))
            self._transports.append(transport)
        if self._popen.stdin is not None:
            flow = partial(asyncio.StreamReaderProtocol, StreamReader())
            writer, writing = await loop.connect_write_pipe(flow, self._popen.stdin)
            self.stdin = StreamWriter(writer, writing, None, loop)
            self._transports.append(writer)

    async def __aenter__(self) -> Child:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bool = True,
    sandbox: Confinement | None = None,
) -> Child:
    """Start ``argv`` (a list, never a shell line) with pipes; the caller closes the child.

    ``env`` is the child's whole environment: see ``environment.filtered``.
    """
    environment = BARE if env is None else env
    with ExitStack() as opening:
        entered = sandbox.enter(argv, cwd, environment) if sandbox else bare(argv, environment)
        launch = opening.enter_context(entered)
        popen = _spawn(launch, cwd, stdin)
        if launch.theirs is not None:
            launch.theirs.close()
        child = Child(popen, launch, opening.pop_all())
    try:
        await child.open_pipes()
    except BaseException:
        await child.close()
        raise
    return child


def _spawn(launch: Launch, cwd: Path, stdin: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # its pipes and its end belong to Child
            launch.argv,
            cwd=cwd,
            env=launch.env,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=launch.pass_fds,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _explained(error, launch.argv, cwd) from error


def _explained(error: Exception, argv: Sequence[str], cwd: Path) -> ProcessProblem:
    program = argv[0] if argv else ""
    if not cwd.is_dir():
        return ProcessProblem(f"no such working directory: {cwd}")
    if isinstance(error, FileNotFoundError):
        return ProgramMissing(f"program not found: {program}", fix="Install it or add it to PATH")
    return ProcessProblem(f"cannot start {program}: {error}")


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # macOS, or a kernel before 5.3


def _read_report(control: socket | None) -> SupervisorReport | None:
    """Read what the supervisor left; nothing if it was killed, or there was none."""
    if control is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        control.setblocking(False)
        code, reached, failed = control.recv(65536).decode("utf-8", "replace").split("\n", 2)
        return SupervisorReport(int(code), reached or None, failed or None)
    return None


def _marked(mark: str) -> Iterator[int]:
    """Yield our processes that carry the mark in the environment they started with."""
    needle = f"{MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if needle in entry.read_bytes().split(b"\0"):
                yield int(entry.parent.name)


def _required(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
