"""Fix names of files that are opened but do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.spelling import distance, nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure

_MISSING = re.compile(r"No such file or directory[:,] '([^']+)'|ENOENT[^']*'([^']+)'")
_STRING = re.compile(r"""(["'])([^"'\n\\]{1,200})\1""")


async def wrong_path(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the file of the project that a path in the code was meant for."""
    match = _MISSING.search(failure.message)
    if match is None:
        return []
    lost = match[1] or match[2]
    files = [path for path in await project.files() if not is_protected(path)]
    for path in dict.fromkeys(frame.file for frame in reversed(failure.frames)):
        text = await project.read(path)
        if text is None or is_protected(path):
            continue
        for literal in dict.fromkeys(m[2] for m in _STRING.finditer(text)):
            near = _nearest_path(literal, lost, files)
            if near:
                fixed = re.sub(rf"([\"']){re.escape(literal)}\1", rf"\g<1>{near}\g<1>", text)
                reason = f"there is no {literal}, there is {near}"
                return [Proposal("wrong path", reason, {path: fixed})]
    return []


def _nearest_path(literal: str, lost: str, files: Iterable[str]) -> str | None:
    """The end of the one path in the project that a literal was meant for."""
    parts = PurePosixPath(literal).parts
    gone = PurePosixPath(lost).parts
    if not parts or gone[-len(parts) :] != parts or "." not in parts[-1]:
        return None
    known = [PurePosixPath(path).parts for path in files]
    same = {known_parts[-len(parts) :] for known_parts in known if known_parts[-1] == parts[-1]}
    if len(same) == 1:
        return "/".join(same.pop())
    spelt = nearest(parts[-1], {known_parts[-1] for known_parts in known})
    ends = {known_parts[-len(parts) :] for known_parts in known if known_parts[-1] == spelt}
    ends = {end for end in ends if distance("/".join(end), "/".join(parts)) <= 3} or ends
    return "/".join(ends.pop()) if len(ends) == 1 else None
