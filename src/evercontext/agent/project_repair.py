"""Check and repair a project as its settings say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evercontext.agent.baseline import Baseline, NewFailures
from evercontext.agent.open_project import OpenProject
from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.repairer import Repairer
from evercontext.agent.verification import (
    Checker,
    CheckScope,
    Findings,
    ProjectCheck,
    Repair,
    Repairing,
    Verify,
    no_repair,
)
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.errors import ConfigError
from evercontext.events.earlier_tests import EarlierTestCounts
from evercontext.settings import Settings, process_environment
from evercontext.settings.build_file_policy import agent_rules
from evercontext.tools.approval_gate import Gate
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.check_counts import ran
from evercontext.workspace.project_commands import ProjectCommands, packages
from evercontext.workspace.workspace import Workspace


def project_checks(project: OpenProject, *, detect: bool) -> Checker | NewFailures:
    """Return the checks that run after changes: the configured ones, and detected tests.

    Failures from before the task are told apart, unless their repair is asked for, too.
    """
    settings, root = project.settings, project.settings.root.resolve()
    earlier = EarlierTestCounts(settings.traces, root, ran)

    def kinds(changed: Sequence[str]) -> tuple[ProjectCheck, ...]:
        return tuple(_checks_for(settings, detect, changed))

    checker = Checker(project.toolbox, project.events, kinds, earlier, root, detects=detect)
    local = project.workspace.local
    if settings.repair_all or local is None:
        return checker
    policy = agent_rules(settings)
    baseline = Baseline(settings, local, policy, project.events, project.store, kinds)
    return NewFailures(checker, baseline)


def _checks_for(settings: Settings, detect: bool, changed: Sequence[str]) -> Iterator[ProjectCheck]:
    if settings.lint_cmd:
        yield ProjectCheck("lint")
    if settings.test_cmd:
        yield ProjectCheck("test")
    elif detect:
        # In a repository of several packages, those that were changed are checked.
        root = settings.root.resolve()
        directories = packages(root, "test", changed or ["."], process_environment())
        yield from (ProjectCheck("test", directory) for directory in directories)
        if settings.auto_test and not directories:
            yield ProjectCheck("test")


def checks_and_repair(
    checker: Checker | NewFailures,
    settings: Settings,
    workspace: Workspace,
    *,
    by_default: bool,
    tiny: bool,
) -> tuple[Verify, Repair]:
    """Return the function that runs the checks after a change, and the one that repairs red ones.

    ``tiny``: the model is too small to repair anything, so only the fixers are used.
    """
    enabled = by_default if settings.repair is None else settings.repair
    local = workspace.local
    if not enabled or local is None:
        return checker, no_repair
    rounds = 0 if tiny else settings.repair_rounds
    root = str(settings.root.resolve())
    repairer = Repairer(checker, local, checker.events, root, rounds)
    return repairer.check, repairer


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The result of repairing a project without a model."""

    trace_id: str
    before: Findings
    after: Findings
    changed: tuple[str, ...]
    proposed: tuple[Proposal, ...] = ()
    """In a dry run: the edits that would be tried."""


async def repair_project(
    project: OpenProject, gate: Gate | None = None, *, trace_id: str, dry: bool = False
) -> RepairReport:
    """Run lint and tests, and repair without a model; a change that does not help is undone."""
    local = project.workspace.local
    if local is None:
        raise ConfigError(
            "the files of this project are behind EC_MCP_URL",
            fix="Unset it, and repair it on the machine that has the files",
        )
    root, kinds = (
        project.settings.root.resolve(),
        tuple(map(ProjectCheck, _kinds(project.settings))),
    )
    earlier = EarlierTestCounts(project.settings.traces, root, ran)
    checker = Checker(project.toolbox, project.events, lambda changed: kinds, earlier, root)
    repairer = Repairer(checker, local, project.events, str(root), rounds=0, everywhere=True)
    caller = Caller(trace_id, Door.RUN, Mode.AGENT)
    before = await repairer.check(caller, CheckScope())
    toolbox = project.toolbox.behind(gate) if gate else project.toolbox
    request = Repairing("repair the project", caller, toolbox, (), "", _no_model)
    if before.verdict != "red" or dry:
        proposals = await repairer.proposals(request, before) if before.verdict == "red" else []
        return RepairReport(trace_id, before, before, (), tuple(proposals))
    after, changed = await repairer(request, before)
    return RepairReport(trace_id, before, after, changed)


def _kinds(settings: Settings) -> Iterator[str]:
    detected = ProjectCommands(settings.root, process_environment())
    if settings.lint_cmd or detected.commands("lint"):
        yield "lint"
    if settings.auto_test is not False and (settings.test_cmd or detected.commands("test")):
        yield "test"


async def _no_model(about: str, toolbox: Toolbox) -> None:
    """No model is asked."""
