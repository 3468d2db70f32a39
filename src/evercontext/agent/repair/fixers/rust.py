"""Apply the proposals of rustc."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure, Hint

_ALIKE = 0.6


async def compiler_hint(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose an edit of rustc, if the line is still the one it names."""
    path = failure.file
    text = await project.read(path) if path and failure.hints else None
    if path is None or text is None or is_protected(path):
        return []
    fixed = applied(text, failure.hints)
    if fixed is None or fixed == text:
        return []
    by = "missing import" if failure.hints[0].new.lstrip().startswith("use ") else "typo"
    return [Proposal(by, f"rustc: {failure.message}", {path: fixed})]


def applied(text: str, hints: Sequence[Hint]) -> str | None:
    """Return the text as the compiler would have it; ``None`` if the lines are not as it says."""
    lines = text.splitlines(keepends=True)
    for hint in sorted(hints, key=lambda hint: -hint.line):
        at = hint.line - 1
        if not 0 <= at <= len(lines):
            return None
        if hint.old is None:
            if hint.new.lstrip().startswith("use ") and hint.new + "\n" in lines:
                return None
            lines.insert(at, hint.new + "\n")
            continue
        if at == len(lines):
            return None
        here = lines[at].rstrip("\r\n")
        alike = difflib.SequenceMatcher(None, here, hint.new).ratio()
        if (hint.old and here.strip() != hint.old.strip()) or alike < _ALIKE:
            return None
        lines[at] = hint.new + lines[at][len(here) :]
    return "".join(lines)
