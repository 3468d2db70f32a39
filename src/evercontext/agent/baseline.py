"""What is new about red checks: told apart from what was red before, and from what is flaky."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from evercontext.agent.verify import Checker, Findings, Scope, run_own, together
from evercontext.domain.check_verdicts import BEFORE
from evercontext.domain.tool import Caller
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.failures.failure import Failure

Before = Callable[[Caller, Scope], Awaitable[Findings | None]]
"""Runs the checks on the tree as it was before the task; ``None`` if that could not be done."""
_CERTAIN = ("syntax", "import", "name", "lint", "format")
"""Kinds of failures that do not come and go."""
Key = tuple[str, ...]


@dataclass(slots=True)
class NewFailures:
    """Runs the checks of a task; only what its change made red counts as red.

    The state before is looked at once, and only if something is red after the change. A test that
    is red and then, without a change, green is flaky and blamed on nobody.
    """

    checker: Checker
    before: Before
    _looked: dict[str, Findings | None] = field(default_factory=dict)
    """What was red before, by task."""
    _certain: set[Key] = field(default_factory=set)
    """Failures that were red twice."""
    _flaky: set[Key] = field(default_factory=set)

    @property
    def toolbox(self) -> Toolbox:
        """The tools that the checks are run with."""
        return self.checker.toolbox

    @property
    def events(self) -> EventLog:
        """Where the checks are written down."""
        return self.checker.events

    async def __call__(self, caller: Caller, scope: Scope) -> Findings:
        """Run the checks and say what they found that is new."""
        project = await self._project(caller, replace(scope, commands=()))
        if not scope.commands or not scope.toolbox:
            return project
        # What a plan asks for must pass, whatever was before.
        return together(
            [project, await run_own(scope.commands, scope.toolbox, self.events, caller)]
        )

    async def _project(self, caller: Caller, scope: Scope) -> Findings:
        found = await self.checker(caller, scope)
        if found.verdict != "red" or not found.failures:
            return found
        if caller.trace_id not in self._looked:
            self._looked[caller.trace_id] = await self.before(caller, scope)
        baseline = self._looked[caller.trace_id]
        new = self._new(found, baseline)
        if any(self._uncertain(failure) for failure in new):
            again = await self.checker(caller, scope)
            if again.verdict != "not verified":
                still = {failure.key for failure in again.failures}
                self._flaky |= {f.key for f in new if self._uncertain(f) and f.key not in still}
                self._certain |= {failure.key for failure in new} & still
                found, new = again, self._new(again, baseline)
        return self._judged(found, new, baseline)

    def _uncertain(self, failure: Failure) -> bool:
        doubtful = bool(failure.test) and failure.kind not in _CERTAIN and not failure.blocks
        return doubtful and failure.key not in self._certain

    def _new(self, found: Findings, baseline: Findings | None) -> tuple[Failure, ...]:
        old = {failure.key for failure in baseline.failures} if baseline else set()
        known = old | self._flaky
        return tuple(failure for failure in found.failures if failure.key not in known)

    def _judged(
        self, found: Findings, new: tuple[Failure, ...], baseline: Findings | None
    ) -> Findings:
        old = {failure.key for failure in baseline.failures} if baseline else set()
        before = tuple(failure for failure in found.failures if failure.key in old)
        notes = [f"{len(before)} failed before, too"] if before else []
        if flaky := sorted(key[-1] for key in self._flaky):
            notes.append(f"{_listed(flaky)} flaky: red, then green without a change")
        reason = "; ".join(notes)
        if found.verdict == "red" and not new:
            return replace(found, verdict=BEFORE, failures=(), before=before, reason=reason)
        return replace(found, failures=new, before=before, reason=reason)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(name.rpartition("::")[2] for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{shown}{more} {'is' if len(names) == 1 else 'are'}"
