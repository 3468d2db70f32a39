"""Propose fixes of lint and layout: unused imports, the language's own fixer and formatter."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.imports import remove_import
from evercontext.agent.repair.fixers.javascript import SUFFIXES
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
    fixed = remove_import(text, match[1], failure.line)
    if fixed == text:
        fixed = remove_import(text, bound.rpartition(".")[2], failure.line)
    reason = f"{match[1]} is imported and not used"
    return [Proposal("unused import", reason, {path: fixed})] if fixed != text else []


async def ecosystem_fix(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to run the language's own fixer, where the project or the machine has it."""
    path, command = failure.file, _fix_command(failure)
    program = project.program(command[0]) if command else None
    if not path or program is None:
        return []
    # cargo works on a crate, not on a file
    touches = () if command[0] == "cargo" else (path,)
    return [
        Proposal(
            "linter's own fix",
            f"{' '.join(command[:2])} for {failure.code or failure.message}",
            tool="run.lint",
            arguments={"command": shlex.join([program, *command[1:], *touches])},
            touches=touches,
        )
    ]


def _fix_command(failure: Failure) -> tuple[str, ...]:
    """Return the program and options that may fix a failure; empty if there are none."""
    ending = PurePosixPath(failure.file or "").suffix
    if failure.tool == "ruff" and failure.kind == "lint":
        return ("ruff", "check", "--fix", "--quiet")
    if ending == ".go" and failure.kind in ("name", "import"):
        return ("goimports", "-w")
    if ending in SUFFIXES and failure.tool == "check":
        return ("eslint", "--fix", "--quiet")
    if ending == ".rs" and failure.kind == "lint":
        return ("cargo", "fix", "--quiet", "--allow-dirty", "--allow-no-vcs")
    return ()


async def formatter(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to run the project's own formatter on a file that is not formatted."""
    if failure.kind != "format" or not failure.file:
        return []
    reason = f"{failure.file} is not formatted"
    # cargo formats a crate, not a file
    alone = () if failure.file.endswith(".rs") else (failure.file,)
    where = {"paths": [*alone]} if alone else {}
    return [Proposal("formatter", reason, tool="run.format", arguments=where, touches=alone)]
