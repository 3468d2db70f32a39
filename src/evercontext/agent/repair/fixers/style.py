"""Lint and layout: unused imports, the linter's own safe fixes, the project's own formatter."""

from __future__ import annotations

import re
import shlex

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.imports import remove_import
from evercontext.agent.repair.project_view import ProjectView
from evercontext.workspace.failures.failure import Failure

_UNUSED = re.compile(r"[`']([\w.]+(?: as \w+)?)[`'] imported but unused")


async def unused_import(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to leave out an import that nothing uses."""
    match, path = _UNUSED.search(failure.message), failure.file
    text = await project.read(path) if path and path.endswith(".py") else None
    if match is None or path is None or text is None or path.endswith("__init__.py"):
        return []
    bound = match[1].split(" as ")[-1]
    mended = remove_import(text, match[1], failure.line)
    if mended == text:
        mended = remove_import(text, bound.rpartition(".")[2], failure.line)
    said = f"{match[1]} is imported and not used"
    return [Proposal("unused import", said, {path: mended})] if mended != text else []


async def linter_fix(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose what ruff itself calls a safe fix."""
    if failure.tool != "ruff" or failure.kind != "lint" or not failure.file:
        return []
    ruff = project.program("ruff")
    if ruff is None:
        return []
    line = shlex.join([ruff, "check", "--fix", "--quiet", failure.file])
    return [
        Proposal(
            "linter's own fix",
            f"ruff --fix for {failure.code}",
            tool="run.lint",
            arguments={"command": line},
            touches=(failure.file,),
        )
    ]


async def formatter(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to run the project's own formatter on a file that is not formatted."""
    if failure.kind != "format" or not failure.file:
        return []
    said = f"{failure.file} is not formatted"
    # cargo formats a crate, not a file
    alone = () if failure.file.endswith(".rs") else (failure.file,)
    where = {"paths": [*alone]} if alone else {}
    return [Proposal("formatter", said, tool="run.format", arguments=where, touches=alone)]
