"""List all fixers in the order in which they are called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers import (
    attributes,
    files,
    javascript,
    modules,
    names,
    rust,
    style,
    syntax,
)
from evercontext.agent.repair.project_view import ProjectView
from evercontext.workspace.failures.failure import Failure

Fixer = Callable[[Failure, ProjectView], Awaitable[list[Proposal]]]

FIXERS: tuple[Fixer, ...] = (
    syntax.broken_syntax,
    names.missing_self,
    names.missing_import,
    names.misspelt_name,
    attributes.misspelt_attribute,
    attributes.misspelt_import,
    attributes.misspelt_keyword,
    modules.moved_name,
    modules.wrong_module,
    modules.circular_import,
    modules.missing_package,
    files.wrong_path,
    style.unused_import,
    style.ecosystem_fix,
    style.formatter,
    javascript.missing_import,
    javascript.wrong_export,
    javascript.wrong_module,
    javascript.open_bracket,
    rust.compiler_hint,
)
MOST_FAILURES = 40
MOST_WAYS = 4


async def propose(
    failures: Iterable[Failure], project: ProjectView, fixers: Iterable[Fixer] = FIXERS
) -> list[tuple[Failure, list[Proposal]]]:
    """Return the fixes of each failure that some fixer knows, likeliest first."""
    every_fixer = tuple(fixers)
    proposals: list[tuple[Failure, list[Proposal]]] = []
    for failure in list(failures)[:MOST_FAILURES]:
        ways: dict[str, Proposal] = {}
        for fixer in every_fixer:
            for proposal in await fixer(failure, project):
                ways.setdefault(proposal.identity, proposal)
        if ways:
            proposals.append((failure, list(ways.values())[:MOST_WAYS]))
    return proposals
