"""Checks and repairs, as the settings want them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from evercontext.agent.baseline import NewFailures
from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.repairer import Repairer
from evercontext.agent.verify import (
    Check,
    Checker,
    Findings,
    Repair,
    Repairing,
    Scope,
    Verify,
    no_repair,
)
from evercontext.app.checked_before import CheckedBefore
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import ConfigError
from evercontext.events.log import EventLog
from evercontext.settings import Settings, process_environment
from evercontext.tools.approval_gate import Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.project_commands import Project
from evercontext.workspace.workspace import LocalWorkspace, Workspace


class House(Protocol):
    """What a repair needs of an open house."""

    settings: Settings
    events: EventLog
    workspace: Workspace
    toolbox: Toolbox


def checked_and_mended(
    checker: Checker | NewFailures,
    settings: Settings,
    workspace: Workspace,
    *,
    by_default: bool,
    tiny: bool,
) -> tuple[Verify, Repair]:
    """Return what runs the checks after a change, and what mends red ones.

    ``tiny``: a model that cannot be expected to mend anything is not asked to; the fixers work.
    """
    wanted = by_default if settings.repair is None else settings.repair
    if not wanted or not isinstance(workspace, LocalWorkspace):
        return checker, no_repair
    rounds = 0 if tiny else settings.repair_rounds
    root = str(settings.root.resolve())
    mender = Repairer(checker, workspace, checker.events, root, rounds)
    return mender.check, mender


@dataclass(frozen=True, slots=True)
class Mended:
    """What came of mending a project without a model."""

    trace_id: str
    before: Findings
    after: Findings
    changed: tuple[str, ...]
    proposed: tuple[Proposal, ...] = ()
    """In a dry run: what would be tried."""


async def mend_project(
    app: House, gate: Gate | None = None, *, trace_id: str, dry: bool = False
) -> Mended:
    """Run the project's lint and tests, and mend what needs no model; nothing ends up worse."""
    if not isinstance(app.workspace, LocalWorkspace):
        raise ConfigError(
            "the files of this project are behind EC_MCP_URL",
            fix="Unset it, and mend on the machine that has the files",
        )
    root, kinds = app.settings.root.resolve(), tuple(map(Check, _kinds(app.settings)))
    before_now = CheckedBefore(app.settings.traces, root)
    checker = Checker(app.toolbox, app.events, lambda changed: kinds, before_now, root)
    mender = Repairer(checker, app.workspace, app.events, str(root), rounds=0, everywhere=True)
    caller = Caller(trace_id, Door.RUN, Mode.AGENT)
    before = await mender.check(caller, Scope())
    toolbox = app.toolbox.behind(gate) if gate else app.toolbox
    given = Repairing("mend the project", caller, toolbox, (), "", _nobody)
    if before.verdict != "red" or dry:
        ways = await mender.proposals(given, before) if before.verdict == "red" else []
        return Mended(trace_id, before, before, (), tuple(ways))
    after, changed = await mender(given, before)
    return Mended(trace_id, before, after, changed)


def _kinds(settings: Settings) -> Iterator[str]:
    project = Project(settings.root, process_environment())
    if settings.lint_cmd or project.commands("lint"):
        yield "lint"
    if settings.auto_test is not False and (settings.test_cmd or project.commands("test")):
        yield "test"


async def _nobody(about: str, toolbox: Toolbox) -> None:
    """No model is asked."""
