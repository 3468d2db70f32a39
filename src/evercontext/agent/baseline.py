"""Tell new failures of the checks from earlier and from flaky ones."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from evercontext.agent.fix_request import failures_to_fix
from evercontext.agent.verification import Checker, CheckScope, Findings, Kinds, run_own, together
from evercontext.domain.check_verdicts import BEFORE
from evercontext.domain.event import Notice
from evercontext.domain.tool import Caller
from evercontext.errors import EverContextError, StoreProblem
from evercontext.events.log import EventLog
from evercontext.files.generated_directories import INSTALLED
from evercontext.files.policy import FilePolicy
from evercontext.files.protected_paths import is_secret
from evercontext.files.tree_before_task import lay_out_before
from evercontext.files.tree_digest import tree_digest
from evercontext.settings import Settings, process_environment
from evercontext.storage.key_value import get_value, put_value
from evercontext.storage.store import Store
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.check_tools import Checks, check_tools
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.failures.failure import Failure
from evercontext.workspace.workspace import LocalWorkspace

Before = Callable[[Caller, CheckScope], Awaitable[Findings | None]]
"""Runs the checks on the tree as it was before the task; ``None`` if that could not be done."""
_CERTAIN = ("syntax", "import", "name", "lint", "format")
"""Kinds of failures that do not come and go."""
Key = tuple[str, ...]


@dataclass(slots=True)
class NewFailures:
    """Runs the checks of a task; only new failures count as red.

    What was red before counts, too, where the text of the task asks to fix it.
    The state before is looked at once, and only if something is red after the change. A test that
    is red and then, without a change, green is flaky and blamed on nobody.
    """

    checker: Checker
    before: Before
    _looked: dict[str, Findings | None] = field(default_factory=dict)
    """Earlier failures, by task."""
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

    async def __call__(self, caller: Caller, scope: CheckScope) -> Findings:
        """Run the checks and return the new failures."""
        project = await self._project(caller, replace(scope, commands=()))
        if not scope.commands or not scope.toolbox:
            return project
        # What a plan asks for must pass, whatever was before.
        return together(
            [project, await run_own(scope.commands, scope.toolbox, self.events, caller)]
        )

    async def _project(self, caller: Caller, scope: CheckScope) -> Findings:
        findings = await self.checker(caller, scope)
        if findings.verdict != "red" or not findings.failures:
            return findings
        if caller.trace_id not in self._looked:
            self._looked[caller.trace_id] = await self.before(caller, scope)
        baseline = self._looked[caller.trace_id]
        new = self._new(findings, baseline, scope.task)
        # Red before and after is red twice.
        self._certain |= {failure.key for failure in baseline.failures} if baseline else set()
        if any(self._uncertain(failure) for failure in new):
            again = await self.checker(caller, scope)
            if again.verdict != "not verified":
                still = {failure.key for failure in again.failures}
                self._flaky |= {f.key for f in new if self._uncertain(f) and f.key not in still}
                self._certain |= {failure.key for failure in new} & still
                findings, new = again, self._new(again, baseline, scope.task)
        return self._judged(findings, new, baseline)

    def _uncertain(self, failure: Failure) -> bool:
        doubtful = bool(failure.test) and failure.kind not in _CERTAIN and not failure.blocks
        return doubtful and failure.key not in self._certain

    def _new(self, findings: Findings, baseline: Findings | None, task: str) -> tuple[Failure, ...]:
        old = baseline.failures if baseline else ()
        keys = {failure.key for failure in old} - failures_to_fix(task, (*old, *findings.failures))
        known = keys | self._flaky
        return tuple(failure for failure in findings.failures if failure.key not in known)

    def _judged(
        self, findings: Findings, new: tuple[Failure, ...], baseline: Findings | None
    ) -> Findings:
        old = {failure.key for failure in baseline.failures} if baseline else set()
        own = {failure.key for failure in new}
        before = tuple(failure for failure in findings.failures if failure.key in old - own)
        notes = [f"{len(before)} failed before, too"] if before else []
        if unfixed := sorted(key[-1] for key in own & old):
            verb = "fails" if len(unfixed) == 1 else "fail"
            notes.insert(0, f"{_names(unfixed)} still {verb}, which the task asks to fix")
        if flaky := sorted(key[-1] for key in self._flaky):
            notes.append(f"{_listed(flaky)} flaky: red, then green without a change")
        reason = "; ".join(notes)
        if findings.verdict == "red" and not new:
            return replace(findings, verdict=BEFORE, failures=(), before=before, reason=reason)
        return replace(findings, failures=new, before=before, reason=reason)


def _listed(names: Sequence[str]) -> str:
    return f"{_names(names)} {'is' if len(names) == 1 else 'are'}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(name.rpartition("::")[2] for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


@dataclass(frozen=True, slots=True)
class Baseline:
    """Run a project's checks on the tree as it was before a task, in a folder of its own."""

    settings: Settings
    workspace: LocalWorkspace
    policy: FilePolicy
    events: EventLog
    store: Store
    kinds: Kinds

    async def __call__(self, caller: Caller, scope: CheckScope) -> Findings | None:
        """Return the findings of the checks; ``None`` if they could not be run there."""
        root = self.settings.root.resolve()
        with tempfile.TemporaryDirectory(prefix="evercontext-before-") as folder:
            place = Path(folder, "before")
            try:
                names = await asyncio.to_thread(
                    lay_out_before, root, self.workspace.journal, caller.trace_id, place, is_secret
                )
            except (EverContextError, OSError) as problem:
                self._say(f"the state before the change was not checked: {problem}", caller)
                return None
            digest = await asyncio.to_thread(tree_digest, place, names)
            key = await asyncio.to_thread(self._key, root, digest, scope)
            known = await self._load(key)
            if known is None:
                known = await self._check(place, caller, scope)
                # A run that read the changed tree, through an installed link, proves nothing.
                if any(f"{root}/{name}" in known.output for name in scope.changed):
                    known = replace(known, verdict="not verified")
                await self._save(key, known)
        if known.verdict == "not verified":
            self._say("the checks could not be run on the state before the change", caller)
            return None
        count = len(known.failures)
        self._say(f"before the change: {count or 'nothing'} failed", caller)
        return known

    async def _check(self, place: Path, caller: Caller, scope: CheckScope) -> Findings:
        settings = self.settings
        source = place / "src"
        paths = ":".join(str(path) for path in (source, place) if path.is_dir())
        root = settings.root.resolve()
        runner = CommandRunner(
            place,
            process_environment(),
            settings.home,
            settings.sandbox,
            self.policy,
            readable=tuple(root / name for name in INSTALLED if (root / name).is_dir()),
            # A package that is installed as a link would bring the changed code.
            variables={"PYTHONPATH": paths},
        )
        checks = Checks(settings.lint_cmd, settings.test_cmd, settings.format_cmd)
        box = Toolbox(check_tools(runner, checks), self.events, state="before")
        checker = Checker(box, self.events, self.kinds, root=place, quiet=True)
        return await checker(caller, scope)

    def _key(self, root: Path, digest: str, scope: CheckScope) -> str:
        settings = self.settings
        checks = [[check.kind, check.directory] for check in self.kinds(scope.changed)]
        parts = [str(root), digest, checks, settings.lint_cmd, settings.test_cmd]
        return "baseline:" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    async def _load(self, key: str) -> Findings | None:
        with suppress(StoreProblem, ValueError, KeyError, TypeError):
            text = await get_value(self.store, key)
            if text is not None:
                data = json.loads(text)
                failures = tuple(Failure.from_json(failure) for failure in data.pop("failures"))
                return Findings(failures=failures, **data)
        return None

    async def _save(self, key: str, findings: Findings) -> None:
        data = {
            "verdict": findings.verdict,
            "failures": [failure.to_json() for failure in findings.failures],
            "passed": findings.passed,
        }
        with suppress(StoreProblem):
            await put_value(self.store, key, json.dumps(data, ensure_ascii=False))

    def _say(self, text: str, caller: Caller) -> None:
        body = Notice(level="info", text=text)
        self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)
