"""Run a command to its end: the one runner of every child process in the product."""

from __future__ import annotations

import asyncio
import time
from asyncio import StreamReader, Task
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evercontext.errors import NoSandbox, ProcessProblem, ProcessTimeout
from evercontext.process.child import Child, Confinement, start
from evercontext.process.system_paths import READ_FIX

MAX_OUTPUT = 1024 * 1024
LINGER = 0.3
"""Seconds that descendants get to finish their output once the command itself has ended."""

OnOutput = Callable[[str, bytes], None]


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended, and what it said."""

    argv: tuple[str, ...]
    exit_code: int
    """Negative: the number of the signal that ended it."""
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    duration: float
    reached: str | None = None
    """The ceiling that ended it: ``memory`` or ``processes``."""

    @property
    def signal(self) -> int | None:
        """The signal that ended the command, if one did."""
        return -self.exit_code if self.exit_code < 0 else None

    @property
    def ok(self) -> bool:
        """True if the command ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out and not self.truncated

    @property
    def text(self) -> str:
        """The standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """The error output as text; bytes that are not UTF-8 are replaced."""
        return self.stderr.decode("utf-8", "replace")

    def check(self) -> Completed:
        """Return itself, or raise what kept the command from succeeding."""
        program = self.argv[0]
        if self.timed_out:
            raise ProcessTimeout(f"{program} did not finish in {self.duration:.0f} s")
        if not self.ok:
            last_line = self.error_text.strip().splitlines()[-1:] or ["no error output"]
            raise ProcessProblem(f"{program} ended with {self.exit_code}: {last_line[0][:300]}")
        return self


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout: float,  # noqa: ASYNC109 - the timeout ends a process tree, not just this coroutine
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    max_output: int = MAX_OUTPUT,
    sandbox: Confinement | None = None,
    on_output: OnOutput | None = None,
    keep_output: bool = True,
) -> Completed:
    """Run ``argv`` (a list, never a shell line) and return how it ended.

    Whatever happens, timeout and cancellation included, the whole tree is gone afterwards.
    Output beyond ``max_output`` bytes (both streams together) ends the command, unless
    ``keep_output`` is false: ``on_output`` then gets it all, and none of it is kept here.
    ``env`` is the child's whole environment: see ``environment.filtered``.
    Raises ProgramMissing or ProcessProblem if the command could not be started.
    """
    started = time.monotonic()
    caught = _Output(max_output if keep_output else None, on_output)
    timed_out = False
    child = await start(argv, cwd=cwd, env=env, stdin=bool(stdin), sandbox=sandbox)
    try:
        async with asyncio.timeout(timeout):
            await _converse(child, stdin, caught)
    except TimeoutError:
        timed_out = True
    finally:
        await child.close()
    code = child.exit_code
    assert code is not None
    report = child.report
    if report and report.failed:
        if report.failed.startswith("cannot run "):
            raise ProcessProblem(report.failed, fix=READ_FIX)
        raise NoSandbox(f"the sandbox could not be closed: {report.failed}")
    return Completed(
        tuple(argv),
        code,
        caught.bytes_of("stdout"),
        caught.bytes_of("stderr"),
        truncated=caught.full.is_set(),
        timed_out=timed_out,
        duration=time.monotonic() - started,
        reached=report.reached if report else None,
    )


@dataclass(slots=True)
class _Output:
    """Both output streams, kept up to a cap that they share."""

    limit: int | None
    """``None``: nothing is kept, and there is no end to it."""
    listener: OnOutput | None
    buffers: dict[str, bytearray] = field(default_factory=dict)
    full: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0

    async def pump(self, name: str, reader: StreamReader) -> None:
        """Keep what comes until the stream ends or the cap is reached."""
        while data := await reader.read(65536):
            if self.full.is_set():
                return
            self._keep(name, data)

    def give_up_if_failed(self, pump: Task[None]) -> None:
        """End the conversation if a listener raised: nobody would empty the pipe any more."""
        if not pump.cancelled() and pump.exception() is not None:
            self.full.set()

    def bytes_of(self, name: str) -> bytes:
        return bytes(self.buffers.get(name, b""))

    def _keep(self, name: str, data: bytes) -> None:
        if self.limit is None:
            if self.listener is not None:
                self.listener(name, data)
            return
        taken = data[: self.limit - self.size]
        self.size += len(taken)
        if len(taken) < len(data):
            self.full.set()
            taken += f"\n[output cut at {self.limit} bytes; the command was stopped]\n".encode()
        self.buffers.setdefault(name, bytearray()).extend(taken)
        if self.listener is not None:
            self.listener(name, taken)


async def _converse(child: Child, stdin: bytes, caught: _Output) -> None:
    """Feed and listen until the command ended and its output did, or the cap is reached."""
    pumps = [
        asyncio.create_task(caught.pump("stdout", child.stdout)),
        asyncio.create_task(caught.pump("stderr", child.stderr)),
    ]
    for pump in pumps:
        pump.add_done_callback(caught.give_up_if_failed)
    full = asyncio.create_task(caught.full.wait())
    others = [asyncio.create_task(child.feed(stdin)), full]
    try:
        ended = asyncio.create_task(child.wait())
        others.append(ended)
        await asyncio.wait({ended, full}, return_when=asyncio.FIRST_COMPLETED)
        await _drain(child, pumps, full)
        for pump in pumps:
            if pump.done():
                pump.result()
    finally:
        await _stop([*pumps, *others])


async def _drain(child: Child, pumps: Sequence[Task[None]], full: Task[bool]) -> None:
    """Give the output time to end; a descendant that holds a pipe open is not waited for."""
    for _ in range(2):
        if full.done():
            return
        _, open_pipes = await asyncio.wait(pumps, timeout=LINGER)
        if not open_pipes:
            child.finished = True
            return
        child.kill_group()


async def _stop(tasks: Sequence[Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
