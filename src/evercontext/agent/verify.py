"""Verification: the harness runs the project's checks after a change.

The model may run them too, as often as it likes; only these runs decide what the end of a task
says.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evercontext.domain.event import Verification
from evercontext.domain.tool import Caller
from evercontext.events.log import EventLog
from evercontext.tools.approval import Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.failures.failure import Failure
from evercontext.workspace.outcomes import ran

Verdict = Literal["verified", "verified with fewer tests", "red", "not verified"]
FEWER: Verdict = "verified with fewer tests"
GREEN: tuple[Verdict, ...] = ("verified", FEWER)
_NOT_STARTED = re.compile(r"bwrap: execvp \S+: No such file or directory\s*$")
_RUNNERS = ("unittest", "pytest", "_pytest", "doctest")
_NO_TESTS = 5
"""What pytest says when there was nothing to run."""

Verify = Callable[[Caller], Awaitable[Verdict]]
Earlier = Callable[[tuple[str, ...], Caller], Awaitable[int]]
"""How many tests a command ran before, here; 0 where nobody knows."""


async def never(command: tuple[str, ...], caller: Caller) -> int:
    """Where nothing was written down."""
    return 0


@dataclass(frozen=True, slots=True)
class Findings:
    """What the checks found, all together."""

    verdict: Verdict
    failures: tuple[Failure, ...] = ()
    passed: int = 0
    """Tests that passed, as far as they were counted."""
    output: str = ""
    """The end of what the red ones said."""


@dataclass(frozen=True, slots=True)
class Repairing:
    """What a repair is given of the task whose checks are red."""

    task: str
    caller: Caller
    toolbox: Toolbox
    """Behind the gate of the task: what would be asked for is asked for here too."""
    changed: tuple[str, ...]
    model: str
    ask: Callable[[str, Toolbox], Awaitable[None]]
    """Lets the task's model work on something, with these tools."""
    seconds_left: Callable[[], float | None] = lambda: None
    """Time until the limit of the task, or ``None`` without one."""


Repair = Callable[[Repairing], Awaitable[tuple[Verdict, tuple[str, ...]]]]
"""Returns how the checks end, and the files that the repair left changed."""


async def no_repair(given: Repairing) -> tuple[Verdict, tuple[str, ...]]:
    """Where nobody asked for repairs, red stays red."""
    return "red", ()


async def no_checks(caller: Caller) -> Verdict:
    """Where nobody asked for checks, nothing is verified."""
    return "not verified"


@dataclass(frozen=True, slots=True)
class Checker:
    """Runs the checks of these kinds (``lint``, ``test``) and writes down how they ended."""

    toolbox: Toolbox
    events: EventLog
    kinds: Callable[[], Sequence[str]]
    """Asked after the change: the task may have brought the first test."""
    earlier: Earlier = never
    root: Path | None = None
    """The project, where it is on this machine."""

    async def __call__(self, caller: Caller) -> Verdict:
        """Run them all; one red check makes the whole red."""
        return (await self.look(caller)).verdict

    async def look(self, caller: Caller) -> Findings:
        """Run them all and say what each found."""
        kinds = await asyncio.to_thread(self.kinds)  # looks at the project's files
        runs = [run for kind in kinds for run in await self._run(kind, caller)]
        verdicts = [verdict for verdict, _ in runs]
        red = [run for verdict, run in runs if verdict == "red"]
        order: tuple[Verdict, ...] = ("red", FEWER, "verified")
        return Findings(
            next((word for word in order if word in verdicts), "not verified"),
            tuple(Failure.from_json(one) for run in red for one in run["failures"]),
            sum(run["counts"].get("passed", 0) for _, run in runs),
            "\n\n".join(run["output"] for run in red),
        )

    async def _run(self, kind: str, caller: Caller) -> list[tuple[Verdict, Mapping[str, Any]]]:
        box = self.toolbox.behind(Gate())
        result = await box.call(f"run.{kind}", {}, caller)
        data = result.data if isinstance(result.data, Mapping) else {}
        runs = data.get("runs") or []
        if not runs:
            self._record(kind, (), None, result.text.strip().splitlines()[0][:200], caller)
        return [(await self._judge(kind, run, caller), run) for run in runs]

    async def _judge(self, kind: str, run: Mapping[str, Any], caller: Caller) -> Verdict:
        counts = ", ".join(f"{number} {word}" for word, number in run["counts"].items())
        ended, command = run["exit_code"], tuple(run["command"])
        verdict: Verdict = "verified" if run["passed"] else "red"
        if run["timed_out"]:
            verdict, counts = "not verified", "not finished in time"
        elif _NOT_STARTED.match(run["output"]):
            verdict, counts = "not verified", "its program is not there"
        elif ended == _NO_TESTS and "pytest" in shlex.join(command):
            verdict, counts = "not verified", "there are no tests"
        elif verdict == "verified" and kind == "test" and (impostor := self._impostor()):
            verdict, counts = "not verified", f"{impostor} stands in the place of the test runner"
        elif verdict == "verified" and kind == "test" and run["counts"]:
            before, now = await self.earlier(command, caller), ran(run["counts"])
            if now < before:
                counts += f"; {before} ran before"
            verdict = "not verified" if not now else FEWER if now < before else verdict
        self._record(kind, command, ended, counts or verdict, caller, run["counts"])
        return verdict

    def _impostor(self) -> str | None:
        """A module of the project that Python takes for the one that runs tests."""
        names = [f"{runner}{end}" for runner in _RUNNERS for end in (".py", "/__init__.py")]
        return next((one for one in names if self.root and (self.root / one).exists()), None)

    def _record(
        self,
        kind: str,
        command: tuple[str, ...],
        ended: int | None,
        said: str,
        caller: Caller,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        body = Verification(
            kind=kind, command=command, exit_code=ended, summary=said, counts=counts or {}
        )
        self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)
