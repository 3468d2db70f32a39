"""Repair reported failures: try, run the checks, keep improvements, revert the rest.

First the fixers, which need no model; then the model, through the ordinary tools. Every attempt is
judged by the same checks and leaves an event. At the end the checks are better than before, or
every byte is as it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from evercontext.agent.baseline import NewFailures
from evercontext.agent.repair.attempt_journal import AttemptJournal, ChangedFile
from evercontext.agent.repair.comparison import compare
from evercontext.agent.repair.edits import Proposal, together
from evercontext.agent.repair.fixers.registry import propose
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import REASON, Guard
from evercontext.agent.repair.repair_prompt import describe
from evercontext.agent.task_limits import LimitHit
from evercontext.agent.verification import Checker, CheckScope, Findings, Repairing
from evercontext.domain.check_verdicts import GREEN
from evercontext.domain.event import Body, Notice, RepairAttempt
from evercontext.domain.tool import Caller, Mode
from evercontext.errors import EverContextError, LimitReached
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.checkpoints import Checkpoint
from evercontext.workspace.workspace import LocalWorkspace

MOST_MOVES = 6
IN_VAIN = 4
"""Attempts of the fixers that may fail in a row (the circuit breaker, E42)."""
_STYLE = ("lint", "format")


@dataclass(slots=True)
class Repairer:
    """Run the checks of a task, and repair the failures."""

    checker: Checker | NewFailures
    workspace: LocalWorkspace
    events: EventLog
    root: str
    rounds: int = 3
    """Times that the model may try."""
    everywhere: bool = False
    """Lint and layout of the whole project, not only of files that the task changed."""
    scope: CheckScope = field(default_factory=CheckScope)
    """The subject of the last run of the checks: each attempt is judged by the same."""
    _checked: float = 0.0

    async def check(self, caller: Caller, scope: CheckScope) -> Findings:
        """Run the checks and remember their subject."""
        self._checked, self.scope = time.time(), scope
        return await self.checker(caller, scope)

    async def __call__(self, task: Repairing, red: Findings) -> tuple[Findings, tuple[str, ...]]:
        """Repair the failures of the last run of the checks, as far as possible."""
        if not red.failures:
            return red, ()
        repair = Attempts(self, task, red, self._checked)
        await repair.run()
        return repair.best, tuple(sorted(repair.changed))

    async def proposals(self, task: Repairing, red: Findings) -> list[Proposal]:
        """Return the fixers' first proposals, untried, without an index in the tree."""
        looking = replace(task.caller, mode=Mode.DRY_RUN)
        task = replace(task, caller=looking)
        repair = Attempts(self, task, red, self._checked)
        return repair.first_of(await repair.ways())


@dataclass(slots=True)
class Attempts:
    """One repair under way."""

    repairer: Repairer
    task: Repairing
    best: Findings
    """The best state so far; later changes are on trial."""
    checked: float
    now: Findings = field(init=False)
    changed: set[str] = field(default_factory=set)
    _on_trial: set[str] = field(default_factory=set)
    _number: int = 0
    _idle: bool = False
    """True if the last try changed nothing: a model that leaves it alone has its reasons."""
    _tried: set[str] = field(default_factory=set)
    _in_vain: list[str] = field(default_factory=list)
    _tools: Toolbox = field(init=False)
    _ledger: AttemptJournal = field(init=False)
    _view: ProjectView = field(init=False)
    _guard: Guard = field(init=False)
    _base: Checkpoint = field(init=False)

    def __post_init__(self) -> None:
        repairer, task = self.repairer, self.task
        self.now = self.best
        self._guard = Guard(task.toolbox.gate)
        self._ledger = AttemptJournal(repairer.workspace, task.caller.trace_id)
        # A tiny model is offered few tools; the fixers need the others, behind the same gate.
        self._tools = repairer.checker.toolbox.behind(task.toolbox.gate)
        self._view = ProjectView(repairer.workspace, self._tools, task.caller, repairer.root)

    async def run(self) -> None:
        """Try the fixers, then the model; leave the best state that was reached."""
        began = self.best
        self._guard = Guard(self.task.toolbox.gate, await self._ledger.created())
        self._base = await self._ledger.mark()
        try:
            try:
                await self._by_fixers()
            except EverContextError as error:
                self._say("warning", f"not repaired without a model: {error}")
            if self.now.verdict == "red" and self.repairer.rounds:
                await self._by_model()
        except EverContextError as error:
            if isinstance(error, LimitHit):
                self._emit(error.event)
            self._say("warning", f"the repair stopped: {error}")
        finally:
            on_trial = self.now is not self.best
            if on_trial:
                await self._ledger.take_back(self._base)
                self.now = self.best
        if self._number and self.best.verdict == "red":
            left, before = len(self.best.failures), len(began.failures)
            back = "; what led nowhere was taken back" if on_trial else ""
            self._say(
                "warning",
                f"repair: {before - left} of {before} failures fixed, {left} left"
                f" after {self._number} tries{back}",
            )

    async def ways(self) -> list[list[Proposal]]:
        """Return the fixers' proposals: allowed, in scope, and not tried before."""
        self._view.forget()
        in_scope = [f for f in self.now.failures if self._in_scope(f.kind, f.file)]
        proposed = await propose(in_scope, self._view)
        allowed = [
            (failure, [way for way in ways if self._allowed(way)]) for failure, ways in proposed
        ]
        # An import may be unused because the name is misspelt where it is used.
        broken = {failure.file for failure, ways in allowed if ways and failure.kind not in _STYLE}
        return [
            ways
            for failure, ways in allowed
            if ways and not (failure.kind in _STYLE and failure.file in broken)
        ]

    @staticmethod
    def first_of(ways: Sequence[Sequence[Proposal]]) -> list[Proposal]:
        """The likeliest fix of each failure, each way once."""
        return list({choices[0].identity: choices[0] for choices in ways}.values())

    def _in_scope(self, kind: str, file: str | None) -> bool:
        return self.repairer.everywhere or kind not in _STYLE or file in self.task.changed

    def _allowed(self, proposal: Proposal) -> bool:
        paths = (*proposal.files, *proposal.touches)
        return proposal.identity not in self._tried and not any(map(self._guard.covers, paths))

    async def _by_fixers(self) -> None:
        for _ in range(MOST_MOVES):
            ways = await self.ways()
            first = self.first_of(ways)
            if not first or self._stuck():
                return
            if await self._try(first):
                if self.now.verdict != "red":
                    return
            elif not await self._one_by_one(ways, alone=len(first) == 1):
                return

    async def _one_by_one(self, ways: Sequence[Sequence[Proposal]], *, alone: bool) -> bool:
        """Try alone, or in another way, the edits that did not help together."""
        for proposals in ways:
            for proposal in proposals[1:] if alone else proposals:
                if self._stuck():
                    return False
                if await self._try([proposal]):
                    return True
        return False

    def _stuck(self) -> bool:
        return len(self._in_vain) >= IN_VAIN

    async def _try(self, proposals: Sequence[Proposal]) -> bool:
        if len(proposals) == 1:
            self._tried.add(proposals[0].identity)
        by = " + ".join(dict.fromkeys(proposal.by for proposal in proposals))
        return await self._attempt(by, lambda: self._apply(proposals))

    async def _apply(self, proposals: Sequence[Proposal]) -> None:
        paths = {path for proposal in proposals for path in proposal.files}
        contents = {path: await self._view.read(path) for path in paths}
        old = {path: text for path, text in contents.items() if text is not None}
        for path, content in sorted(together(proposals, old).items()):
            mode = "overwrite" if path in old else "create"
            await self._call("write_file", {"path": path, "content": content, "mode": mode})
        calls = {proposal.identity: proposal for proposal in proposals if proposal.tool}
        for proposal in calls.values():
            await self._call(proposal.tool, dict(proposal.arguments))

    async def _call(self, tool: str, arguments: dict[str, object]) -> None:
        result = await self._tools.call(tool, arguments, self.task.caller)
        if result.error:
            raise result.error

    async def _by_model(self) -> None:
        self._in_vain = []
        for _ in range(self.repairer.rounds):
            self._view.forget()
            about = await describe(self.task, self.now, self._view, self._in_vain)
            toolbox = self.task.toolbox.behind(self._guard.gate)
            await self._attempt(self.task.model, lambda: self.task.ask(about, toolbox))  # noqa: B023
            if self.now.verdict != "red" or self._idle:
                return

    async def _attempt(self, by: str, do: Callable[[], Awaitable[None]]) -> bool:
        """Do something, run the checks, and keep it only if they allow it."""
        left = self.task.seconds_left()
        if left == 0.0:
            raise _out_of_time()
        self._number += 1
        await self._next_second()
        start = await self._ledger.mark()
        try:
            async with asyncio.timeout(left):
                return await self._on_trial_since(start, by, do)
        except BaseException as stopped:
            # What was stopped before or among its checks, nobody has judged: it is no repair.
            await self._ledger.take_back(start)
            if isinstance(stopped, TimeoutError):
                raise _out_of_time() from None
            raise

    async def _on_trial_since(
        self, start: Checkpoint, by: str, do: Callable[[], Awaitable[None]]
    ) -> bool:
        await do()
        bad = await self._ledger.trespasses(start, self._guard.covers)
        touched = await self._ledger.touched(start)
        self._idle = not touched
        if bad:
            return await self._reject(by, start, bad, touched)
        if not touched:
            self._tell(by, self.now, "same", ())
            self._in_vain.append(f"{by}: nothing was changed")
            return False
        return await self._judge(by, start, touched)

    async def _judge(self, by: str, start: Checkpoint, touched: Sequence[ChangedFile]) -> bool:
        self.checked = time.time()
        after = await self.repairer.checker(self.task.caller, self.repairer.scope)
        step = compare(self.now, after)
        paths = tuple(change.path for change in touched)
        self._tell(by, after, step, paths)
        if step not in ("better", "other"):
            await self._ledger.take_back(start)
            problem = (
                after.failures[0].message.splitlines()[0][:200] if after.failures else "no result"
            )
            self._in_vain.append(f"{by} changed {', '.join(paths[:5])}: {step}, {problem}")
            return False
        self.now = after
        self._on_trial |= set(paths)
        if compare(self.best, after) == "better":
            self.best, self._base = after, await self._ledger.mark()
            self.changed |= self._on_trial
            self._in_vain = []
        return True

    async def _reject(
        self, by: str, start: Checkpoint, bad: Sequence[str], touched: Sequence[ChangedFile]
    ) -> bool:
        await self._ledger.take_back(start, everything=True)
        self._tell(by, self.now, "rejected", tuple(change.path for change in touched))
        self._say("warning", f"rejected and restored: {', '.join(bad[:5])}. {REASON}")
        self._in_vain.append(f"{by} changed {', '.join(bad[:5])}: rejected, {REASON}")
        return False

    async def _next_second(self) -> None:
        # Python takes compiled code for current if the source has the same size and second.
        await asyncio.sleep(max(0.0, int(self.checked) + 1.02 - time.time()))

    def _tell(self, by: str, after: Findings, step: str, paths: tuple[str, ...]) -> None:
        body = RepairAttempt(
            number=self._number,
            by=by,
            failures_before=len(self.now.failures),
            failures_after=len(after.failures),
            green=after.verdict in GREEN,
            step=step,
            kept=step in ("better", "other"),
            paths=paths,
        )
        self._emit(body)

    def _say(self, level: str, text: str) -> None:
        self._emit(Notice(level=level, text=text))

    def _emit(self, body: Body) -> None:
        caller = self.task.caller
        self.repairer.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)


def _out_of_time() -> LimitReached:
    return LimitReached(
        "the time of the task is used up", fix="Raise it with --timeout or EC_TIMEOUT"
    )
