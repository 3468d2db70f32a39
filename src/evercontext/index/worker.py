"""What works through the queue: fed by hooks, by a watcher, or by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from evercontext.errors import StoreBusy
from evercontext.index.commit_pass import CommitPass
from evercontext.index.folder import FOLDER
from evercontext.index.git_hook import set_marks_aside
from evercontext.index.indexer import Report
from evercontext.index.queue import WHOLE_TREE, JobQueue, Leased
from evercontext.index.search import CodeIndex
from evercontext.index.walker import Walker

_PATIENCE = 30.0

OnReport = Callable[[Report], None]


async def drain(
    index: CodeIndex, folder: Path, patience: float = _PATIENCE, *, commits: bool = False
) -> list[Report]:
    """Index everything that waits: commits that hooks have marked, then queued paths.

    While another process indexes, this one waits for it up to ``patience`` seconds and then
    leaves the rest to that one or to the next. ``commits`` looks for commits without a mark too.
    """
    queue = JobQueue(index.table.store)
    reports: list[Report] = []
    try:
        async with index.indexer.lease.hold(patience):
            # Rows are worked on by the holder of the lease alone: an earlier one has died.
            await queue.free()
            if await _take_marks(queue, folder) or commits:
                reports.append(await CommitPass(index.indexer).run())
            while leased := await queue.take():
                reports.append(await _update(index, queue, leased))
    except StoreBusy:
        return reports
    return reports


async def _take_marks(queue: JobQueue, folder: Path) -> bool:
    """Turn marks into a job; they are removed once that is durable."""
    marks = set_marks_aside(folder)
    if marks is None:
        return False
    await queue.add([WHOLE_TREE])
    marks.unlink(missing_ok=True)
    return True


async def _update(index: CodeIndex, queue: JobQueue, leased: Leased) -> Report:
    whole = WHOLE_TREE in leased.paths
    try:
        report = await index.update(None if whole else list(leased.paths))
    except BaseException:
        await asyncio.shield(queue.give_back(leased))
        raise
    await queue.finish(leased)
    return report


async def changes(root: Path, walker: Walker, stop: asyncio.Event) -> AsyncIterator[list[str]]:
    """Yield the paths that changed below a root, as the system reports them."""
    from watchfiles import Change, awatch

    def wanted(change: Change, path: str) -> bool:
        parts = Path(path).parts
        return FOLDER not in parts and ".git" not in parts

    async for found in awatch(root, watch_filter=wanted, stop_event=stop, step=100, debounce=800):
        paths = {Path(path).relative_to(root).as_posix() for _, path in found}
        kept = sorted(p for p in paths if walker.wants(p) or not Path(p).suffix)
        if kept:
            yield kept


async def watch(
    index: CodeIndex, folder: Path, stop: asyncio.Event, on_report: OnReport | None = None
) -> None:
    """Keep the index fresh until ``stop`` is set."""
    queue = JobQueue(index.table.store)
    root = index.indexer.walker.root
    async for paths in changes(root, index.indexer.walker, stop):
        await queue.add(paths)
        for report in await drain(index, folder):
            if on_report and report.touched:
                on_report(report)
