"""Analyse texts: in this process, or in several others at once where there is much to do.

A parser can hang or crash on a hostile text. In a worker that costs one process and one file: the
file is left out with its reason, and the others go on. In this process, which is quicker for a few
files, a mark on disk names the text being analysed; if the process dies over it, the next one gives
that text to a worker.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from asyncio import IncompleteReadError
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path

from evercontext.index.analyse_text import analyse
from evercontext.index.analysis import Analysis, unpack
from evercontext.process.child import Child, start
from evercontext.process.environment import BARE
from evercontext.retrieval.blas import ONE_THREAD
from evercontext.retrieval.static_vectors import StaticVectors

MARK = "analysing"
_MARKED = 100
_SECONDS = 5.0
"""Processor time that one text may take."""
_PATIENCE = 120.0
"""Seconds by the clock after which an answer is not waited for, however busy the machine."""
_AHEAD = 6
"""Texts that wait inside one process, so that it is never idle."""
_MOST_PROCESSES = 4
_LARGEST_ANSWER = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Job:
    """A text to be analysed."""

    content: str
    language: str
    text: str


@dataclass(slots=True)
class AnalysisOutcome:
    """What became of some texts, by their contents."""

    analyses: dict[str, Analysis] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Why a text could not be analysed."""


class LocalAnalyser:
    """Analyses texts in this process, one after another."""

    def __init__(self, folder: Path, vectors: StaticVectors | None) -> None:
        self._mark = folder / MARK
        self._vectors = vectors

    async def analyse(self, jobs: Sequence[Job]) -> AnalysisOutcome:
        """Return the analyses; a text over which a process died before goes to a worker."""
        suspect = self._suspect()
        unsuspected = [job for job in jobs if job.content != suspect]
        outcome = await asyncio.to_thread(self._analyse, unsuspected)
        if len(unsuspected) < len(jobs):
            async with WorkerPool(self._vectors, processes=1) as pool:
                checked = await pool.analyse([job for job in jobs if job.content == suspect])
            outcome.analyses |= checked.analyses
            outcome.failed |= checked.failed
        return outcome

    def _analyse(self, jobs: Sequence[Job]) -> AnalysisOutcome:
        outcome = AnalysisOutcome()
        if not jobs:
            return outcome
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        mark = os.open(self._mark, flags, 0o600)
        try:
            with _no_collection():
                for job in jobs:
                    os.pwrite(mark, job.content.encode().ljust(_MARKED)[:_MARKED], 0)
                    outcome.analyses[job.content] = analyse(job.text, job.language, self._vectors)
        finally:
            os.close(mark)
            self._mark.unlink(missing_ok=True)
        return outcome

    def _suspect(self) -> str | None:
        try:
            fd = os.open(self._mark, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            return os.read(fd, _MARKED).decode("utf-8", "replace").strip()
        finally:
            os.close(fd)


class WorkerPool:
    """Analyses texts in other processes; use it as ``async with``."""

    def __init__(
        self,
        vectors: StaticVectors | None,
        *,
        processes: int | None = None,
        seconds: float = _SECONDS,
        command: Sequence[str] | None = None,
    ) -> None:
        """``command`` starts a worker; by default this program's own."""
        name = vectors.name if vectors else ""
        own = (sys.executable, "-m", "evercontext.index.worker_process", name, str(seconds))
        self._command = own if command is None else command
        self._seconds = seconds
        self._size = processes or min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._idle: list[Child] = []

    async def __aenter__(self) -> WorkerPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        for child in self._idle:
            await child.close()

    async def analyse(self, jobs: Sequence[Job]) -> AnalysisOutcome:
        """Return the analyses, and the reasons of those that ended their worker.

        Texts that come after one another are alike, so each worker gets a stretch of them: what it
        has learned of words serves it again, and need not be learned by the others.
        """
        outcome, size = AnalysisOutcome(), min(self._size, len(jobs))
        bounds = [i * len(jobs) // size for i in range(size + 1)] if size else [0]
        shares = [deque(jobs[a:b]) for a, b in pairwise(bounds)]
        async with asyncio.TaskGroup() as group:
            for own in shares:
                group.create_task(self._work(own, shares, outcome))
        return outcome

    async def _work(
        self, own: deque[Job], shares: Sequence[deque[Job]], outcome: AnalysisOutcome
    ) -> None:
        while any(shares):
            child = self._idle.pop() if self._idle else await self._start_worker()
            pending: deque[Job] = deque()
            try:
                while await self._next(child, _coming(own, shares), pending, outcome):
                    pass
            except (IncompleteReadError, TimeoutError, ConnectionError) as end:
                await child.close()
                culprit = pending.popleft()
                outcome.failed[culprit.content] = self._reason(child, end)
                own.extendleft(reversed(pending))
            except BaseException:
                await child.close()
                raise
            else:
                self._idle.append(child)

    async def _next(
        self, child: Child, coming: Iterator[Job], pending: deque[Job], outcome: AnalysisOutcome
    ) -> bool:
        """Hand texts out and take one answer; False once there is nothing left."""
        from evercontext.index.worker_process import WORD, framed

        assert child.stdin is not None
        for job in islice(coming, _AHEAD - len(pending)):
            pending.append(job)
            child.stdin.write(framed(job.language, job.text))
        if not pending:
            return False
        async with asyncio.timeout(_PATIENCE):
            size = int.from_bytes(await child.stdout.readexactly(WORD), "little")
            if size > _LARGEST_ANSWER:
                raise ConnectionError("no answer of ours")
            answer = await child.stdout.readexactly(size)
        outcome.analyses[pending.popleft().content] = unpack(answer)
        return True

    async def _start_worker(self) -> Child:
        # The same code as here, wherever it was imported from; one thread each.
        env = {**BARE, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        env |= {**ONE_THREAD, "PYTHONSAFEPATH": "1"}
        return await start(tuple(self._command), cwd=Path("/"), env=env)

    def _reason(self, child: Child, end: BaseException) -> str:
        code = child.exit_code or 0
        if code == -signal.SIGPROF:
            return f"its parser took more than {self._seconds:g} s"
        if isinstance(end, TimeoutError):
            return f"its parser did not answer within {_PATIENCE:.0f} s"
        if code < 0:
            with suppress(ValueError):
                return f"its parser crashed ({signal.Signals(-code).name})"
        return "its parser failed"


def _coming(own: deque[Job], shares: Sequence[deque[Job]]) -> Iterator[Job]:
    """Yield one's own share, and then what the others would come to last."""
    while own:
        yield own.popleft()
    while longest := max(shares, key=len):
        yield longest.pop()


@contextmanager
def _no_collection() -> Iterator[None]:
    """The collector finds nothing here and would take a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
