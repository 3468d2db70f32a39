"""Run the project's checks after a change.

The model may run them too, as often as it likes; only these runs decide what the end of a task
says. ``verified`` means that every check that was named or found ran, and passed, after the last
change.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evercontext.domain.check_verdicts import FEWER, WORST_FIRST, Verdict
from evercontext.domain.event import Verification
from evercontext.domain.tool import Caller
from evercontext.events.log import EventLog
from evercontext.tools.approval_gate import Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.check_counts import ran, spell, unproved
from evercontext.workspace.failures.failure import Failure

_RUNNERS = ("unittest", "pytest", "_pytest", "doctest")
_LONGEST = 200

Earlier = Callable[[tuple[str, ...], Caller], Awaitable[int]]
"""How many tests a command ran before, here; 0 where that is unknown."""


async def never(command: tuple[str, ...], caller: Caller) -> int:
    """Where nothing was written down."""
    return 0


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of all checks together."""

    verdict: Verdict
    failures: tuple[Failure, ...] = ()
    passed: int = 0
    """Tests that passed, as far as they were counted."""
    output: str = ""
    """The end of the red checks' output."""
    reason: str = ""
    """Why the verdict is not ``verified``, in a few words."""
    before: tuple[Failure, ...] = ()
    """Failures that were there before the change, too."""
    required: bool = True
    """False where no check was named or found."""


NOTHING_WANTED = Findings("not verified", reason="no check is named or found", required=False)
CHANGED_SINCE = Findings(
    "not verified", reason="a command in the background changed files after the checks"
)
_NOT_LOOKED_FOR = "no check was looked for: --auto-test or EC_AUTO_TEST=1 runs the project's tests"


def together(findings: Sequence[Findings]) -> Findings:
    """Join the results of several checks; the worst decides."""
    every = [result for result in findings if result.required]
    if not every:
        return next(iter(findings), NOTHING_WANTED)
    worst = min(every, key=lambda result: WORST_FIRST.index(result.verdict))
    reasons = dict.fromkeys(result.reason for result in every if result.verdict == worst.verdict)
    return Findings(
        worst.verdict,
        tuple(failure for result in every for failure in result.failures),
        sum(result.passed for result in every),
        "\n\n".join(result.output for result in every if result.output),
        "; ".join(reason for reason in reasons if reason),
        tuple(failure for result in every for failure in result.before),
    )


@dataclass(frozen=True, slots=True)
class ProjectCheck:
    """One of the project's checks: ``lint`` or ``test`` of one of its packages."""

    kind: str
    directory: str = "."


@dataclass(frozen=True, slots=True)
class CheckScope:
    """The parts of a task that are checked."""

    changed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Checks that the task's plan asks for."""
    toolbox: Toolbox | None = None
    """Runs these commands: behind the gate of the task."""
    task: str = ""
    """The text of the task: failures that it asks to fix are its own, however old they are."""


Verify = Callable[[Caller, CheckScope], Awaitable[Findings]]


@dataclass(frozen=True, slots=True)
class Repairing:
    """The task whose checks are red, as a repair needs it."""

    task: str
    caller: Caller
    toolbox: Toolbox
    """Behind the gate of the task: the same calls need approval here."""
    changed: tuple[str, ...]
    model: str
    ask: Callable[[str, Toolbox], Awaitable[None]]
    """Lets the task's model work on something, with these tools."""
    seconds_left: Callable[[], float | None] = lambda: None
    """Time until the limit of the task, or ``None`` without one."""


Repair = Callable[[Repairing, Findings], Awaitable[tuple[Findings, tuple[str, ...]]]]
"""Takes the red checks; returns how they end, and the files that the repair left changed."""


async def no_repair(task: Repairing, red: Findings) -> tuple[Findings, tuple[str, ...]]:
    """Repair nothing: red stays red."""
    return red, ()


async def no_checks(caller: Caller, scope: CheckScope) -> Findings:
    """Check nothing: the result is not verified."""
    return NOTHING_WANTED


Kinds = Callable[[Sequence[str]], Sequence[ProjectCheck]]
"""Given the changed files, returns the checks that are wanted."""


@dataclass(frozen=True, slots=True)
class Checker:
    """Runs the checks that are wanted and writes down how they ended."""

    toolbox: Toolbox
    events: EventLog
    kinds: Kinds
    """Asked after the change: the task may have brought the first test."""
    earlier: Earlier = never
    root: Path | None = None
    """The project, where it is on this machine."""
    quiet: bool = False
    """Nothing is written down: these checks say nothing of the task itself."""
    detects: bool = True
    """False where the project's tests are not looked for: whether it has any is then unknown."""

    async def __call__(self, caller: Caller, scope: CheckScope) -> Findings:
        """Run all checks and return their result."""
        # Looks at the project's files.
        checks = await asyncio.to_thread(self.kinds, scope.changed)
        findings = [candidate for check in checks for candidate in await self._run(check, caller)]
        if scope.commands and scope.toolbox:
            findings.append(await run_own(scope.commands, scope.toolbox, self.events, caller))
        if not findings and not self.detects:
            return replace(NOTHING_WANTED, reason=_NOT_LOOKED_FOR)
        return together(findings)

    async def _run(self, check: ProjectCheck, caller: Caller) -> list[Findings]:
        box = self.toolbox.behind(Gate())
        place = {} if check.directory == "." else {"directory": check.directory}
        result = await box.call(f"run.{check.kind}", place, caller)
        data = result.data if isinstance(result.data, Mapping) else {}
        runs = data.get("runs") or []
        if not runs:
            reason = (result.text.strip().splitlines() or ["not run"])[0][:_LONGEST]
            body = Verification(kind=check.kind, command=(), exit_code=None, summary=reason)
            self._record(body, caller)
            return [Findings("not verified", reason=f"{check.kind} did not run: {reason}")]
        return [await self._judge(check.kind, run, caller) for run in runs]

    async def _judge(self, kind: str, run: Mapping[str, Any], caller: Caller) -> Findings:
        counted, command = run["counts"], tuple(run["command"])
        summary = spell(counted)
        findings = judged(kind, run)
        if findings.verdict == "not verified":
            summary = findings.reason
        elif findings.verdict == "verified" and kind == "test":
            findings, summary = await self._measured(findings, run, summary, caller)
        body = Verification(
            kind=kind,
            command=command,
            exit_code=run["exit_code"],
            summary=summary or findings.verdict,
            counts=counted,
            verdict=findings.verdict,
        )
        self._record(body, caller)
        return findings

    async def _measured(
        self, findings: Findings, run: Mapping[str, Any], summary: str, caller: Caller
    ) -> tuple[Findings, str]:
        """Compare green tests with how many ran before, and with the command that ran them."""
        if impostor := self._impostor():
            reason = f"{impostor} stands in the place of the test runner"
            return replace(findings, verdict="not verified", reason=reason), reason
        now = ran(run["counts"])
        before = await self.earlier(tuple(run["command"]), caller) if run["counts"] else 0
        if now >= before:
            return findings, summary
        reason = f"{now} ran, {before} before"
        return replace(findings, verdict=FEWER, reason=reason), f"{summary}; {before} ran before"

    def _impostor(self) -> str | None:
        """A module of the project that Python takes for the one that runs tests."""
        names = [f"{runner}{end}" for runner in _RUNNERS for end in (".py", "/__init__.py")]
        return next(
            (candidate for candidate in names if self.root and (self.root / candidate).exists()),
            None,
        )

    def _record(self, body: Verification, caller: Caller) -> None:
        if self.quiet:
            return
        self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)


def judged(kind: str, run: Mapping[str, Any]) -> Findings:
    """Judge one run of a check by its exit code, its counts, and whether it checked anything."""
    line = shlex.join(run["command"])
    passed = run["counts"].get("passed", 0)
    if run["timed_out"]:
        return Findings("not verified", reason=f"{kind} was not finished in time")
    why = unproved(run["output"], run["exit_code"], line, tests=kind == "test")
    if why:
        return Findings("not verified", reason=f"{kind}: {why}")
    if run["passed"]:
        return Findings("verified", passed=passed)
    failures = tuple(Failure.from_json(candidate) for candidate in run["failures"])
    return Findings("red", failures, passed, run["output"])


async def run_own(
    commands: Sequence[str], toolbox: Toolbox, events: EventLog, caller: Caller
) -> Findings:
    """Run the checks that a plan asks for, in the sandbox, and write down how each ended."""
    findings = []
    for command in commands:
        result = await toolbox.call("run_command", {"command": command}, caller)
        runs = result.data.get("runs") if isinstance(result.data, Mapping) else None
        lines = result.text.strip().splitlines() or [""]
        reason = (lines[-1] if result.ok else lines[0])[:_LONGEST]
        code = runs[0]["exit_code"] if runs else None
        judgement = judged("task", runs[0]) if runs else Findings("not verified", reason=reason)
        body = Verification(
            kind="task",
            command=(command,),
            exit_code=code,
            summary=judgement.reason or reason,
            counts=runs[0]["counts"] if runs else {},
            verdict=judgement.verdict,
        )
        events.emit(body, trace_id=caller.trace_id, parent=caller.parent)
        findings.append(judgement)
    return together(findings)
