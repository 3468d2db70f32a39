"""Query git about a tree: read-only, bounded, ignoring the repository's configuration."""

from __future__ import annotations

from pathlib import Path

from evercontext.errors import ProcessProblem
from evercontext.files.git_pipes import pipe_for_git
from evercontext.process.environment import filtered
from evercontext.process.run import Completed, run
from evercontext.process.stall_watch import unless_stalled
from evercontext.settings import process_environment

# A repository's own configuration must not make a listing run its programs, and a clone without
# its blobs must not fetch them behind the user's back.
_QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never")
_GIT = ("git", *(word for setting in _QUIET for word in ("-c", setting)))
_SECONDS = 60.0
_MOST_BYTES = 64 * 1024 * 1024


async def ask_git(
    folder: Path, *arguments: str, stdin: bytes = b"", most: int = _MOST_BYTES
) -> Completed | None:
    """Run git in a folder and return what it said; ``None`` if it could not be run to its end.

    The variables of a hook around us would make git look at another repository: they stay out.
    """
    try:
        command = run(
            (*_GIT, *arguments),
            cwd=folder,
            timeout=_SECONDS,
            env={**filtered(process_environment()), "GIT_OPTIONAL_LOCKS": "0"},
            stdin=stdin,
            max_output=most,
        )
        done = await unless_stalled(command, pipe_for_git, folder, process_environment())
    except ProcessProblem:
        return None
    return None if done.timed_out or done.truncated else done


def in_git(root: Path) -> bool:
    """Tell whether a folder lies in a git work tree."""
    return any((place / ".git").exists() for place in (root, *root.parents))
