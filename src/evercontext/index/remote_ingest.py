"""Tell a search server elsewhere (``EC_RAG_URL``) what was committed here.

Which commit it knows is kept beside the marks of the hooks. A server that does not answer is told
everything since then with the next commit.
"""

from __future__ import annotations

import os
from pathlib import Path

from evercontext.index.commits import Commits
from evercontext.index.git_hook import set_marks_aside
from evercontext.index.lease import IndexLease
from evercontext.index.remote import RemoteIndex
from evercontext.index.walker import Walker

TOLD = "announced"
_LOCK = "announced.lock"
"""Not the lock of the index: the server may be about to index the same tree."""
_PATIENCE = 30.0
_LONGEST = 128


async def announce(walker: Walker, folder: Path, remote: RemoteIndex, trace_id: str) -> int:
    """Send what changed between the commit that was told last and HEAD; return how many paths."""
    async with IndexLease(folder, _LOCK).hold(_PATIENCE):
        marks = set_marks_aside(folder)
        commits = Commits(walker.root)
        head, told = await commits.head(), _told(folder)
        sent = 0
        if head is not None and head != told:
            difference = (await commits.difference(told, head)).limited_to(walker.wants)
            sent = len(difference)
            if sent:
                await remote.ask("ingest", {"diff": difference.as_json()}, trace_id)
            _tell(folder, head)
        if marks is not None:
            marks.unlink(missing_ok=True)
    return sent


def _told(folder: Path) -> str | None:
    try:
        with (folder / TOLD).open("r", encoding="ascii") as file:
            return file.read(_LONGEST).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _tell(folder: Path, commit: str) -> None:
    fresh = folder / f"{TOLD}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    made = os.open(fresh, flags, 0o600)
    try:
        os.write(made, commit.encode() + b"\n")
        os.fsync(made)
    finally:
        os.close(made)
    fresh.replace(folder / TOLD)
