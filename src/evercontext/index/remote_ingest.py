"""Send what was committed here to a search server elsewhere (``EC_RAG_URL``).

The commit that was sent last is noted beside the marks of the hooks. A server that does not answer
is sent everything since then with the next commit.
"""

from __future__ import annotations

from pathlib import Path

from evercontext.files.atomic_write import replace_file
from evercontext.index.commits import Commits
from evercontext.index.git_hook import set_marks_aside
from evercontext.index.lease import IndexLease
from evercontext.index.remote_search import RemoteIndex
from evercontext.index.walker import Walker

SENT = "announced"
_LOCK = "announced.lock"
"""Not the lock of the index: the server may be about to index the same tree."""
_PATIENCE = 30.0
_LONGEST = 128


async def announce(walker: Walker, folder: Path, remote: RemoteIndex, trace_id: str) -> int:
    """Send what changed between the commit that was sent last and HEAD; return how many paths."""
    async with IndexLease(folder, _LOCK).hold(_PATIENCE):
        marks = set_marks_aside(folder)
        commits = Commits(walker.root)
        head, last_sent = await commits.head(), _last_sent(folder)
        sent = 0
        if head is not None and head != last_sent:
            difference = (await commits.difference(last_sent, head)).limited_to(walker.wants)
            sent = len(difference)
            if sent:
                await remote.ask("ingest", {"diff": difference.as_json()}, trace_id)
            _note_sent(folder, head)
        if marks is not None:
            marks.unlink(missing_ok=True)
    return sent


def _last_sent(folder: Path) -> str | None:
    try:
        with (folder / SENT).open("r", encoding="ascii") as file:
            return file.read(_LONGEST).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _note_sent(folder: Path, commit: str) -> None:
    replace_file(folder / SENT, commit.encode() + b"\n")
