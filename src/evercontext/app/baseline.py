"""Runs a project's checks on the tree as it was before a task, in a folder of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from evercontext.agent.verify import Checker, Findings, Kinds, Scope
from evercontext.domain.event import Notice
from evercontext.domain.tool import Caller
from evercontext.errors import EverContextError, StoreProblem
from evercontext.events.log import EventLog
from evercontext.files.policy import FilePolicy
from evercontext.files.protected_paths import is_secret
from evercontext.files.tree_before_task import INSTALLED, lay_out_before
from evercontext.files.tree_digest import tree_digest
from evercontext.settings import Settings, process_environment
from evercontext.storage.store import Store
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.checks import Checks, check_tools
from evercontext.workspace.command_runner import CommandRunner
from evercontext.workspace.failures.failure import Failure
from evercontext.workspace.workspace import LocalWorkspace


@dataclass(frozen=True, slots=True)
class Baseline:
    """The checks of a project, for the state before a task."""

    settings: Settings
    workspace: LocalWorkspace
    policy: FilePolicy
    events: EventLog
    store: Store
    kinds: Kinds

    async def __call__(self, caller: Caller, scope: Scope) -> Findings | None:
        """Return what the checks find there; ``None`` if they could not be run there."""
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
            known = await self._kept(key)
            if known is None:
                known = await self._look(place, caller, scope)
                # A run that reached into the changed tree, by an installed link, proves nothing.
                if any(f"{root}/{name}" in known.output for name in scope.changed):
                    known = replace(known, verdict="not verified")
                await self._keep(key, known)
        if known.verdict == "not verified":
            self._say("the checks could not be run on the state before the change", caller)
            return None
        count = len(known.failures)
        self._say(f"before the change: {count or 'nothing'} failed", caller)
        return known

    async def _look(self, place: Path, caller: Caller, scope: Scope) -> Findings:
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
        box = Toolbox(check_tools(runner, checks), self.events)
        checker = Checker(box, self.events, self.kinds, root=place, quiet=True)
        return await checker(caller, scope)

    def _key(self, root: Path, digest: str, scope: Scope) -> str:
        settings = self.settings
        wanted = [[check.kind, check.directory] for check in self.kinds(scope.changed)]
        parts = [str(root), digest, wanted, settings.lint_cmd, settings.test_cmd]
        return "baseline:" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    async def _kept(self, key: str) -> Findings | None:
        with suppress(StoreProblem, ValueError, KeyError, TypeError):
            row = await self.store.fetch_one("SELECT value FROM kept WHERE key = ?", (key,))
            if row:
                data = json.loads(row["value"])
                failures = tuple(Failure.from_json(one) for one in data.pop("failures"))
                return Findings(failures=failures, **data)
        return None

    async def _keep(self, key: str, found: Findings) -> None:
        data = {
            "verdict": found.verdict,
            "failures": [failure.to_json() for failure in found.failures],
            "passed": found.passed,
        }
        with suppress(StoreProblem):
            await self.store.execute(
                "INSERT INTO kept (key, value) VALUES (?, ?)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (key, json.dumps(data, ensure_ascii=False)),
            )

    def _say(self, text: str, caller: Caller) -> None:
        body = Notice(level="info", text=text)
        self.events.emit(body, trace_id=caller.trace_id, parent=caller.parent)
