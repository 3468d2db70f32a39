"""What works through the queue: fed by hooks, by a watcher, or by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from evercontext.errors import StoreBusy
from evercontext.index.folder import FOLDER
from evercontext.index.git_hook import take_marks
from evercontext.index.indexer import Report
from evercontext.index.queue import WHOLE_TREE, JobQueue
from evercontext.index.search import CodeIndex
from evercontext.index.walker import Walker

_PATIENCE = 30.0
_LOOK_AGAIN = 0.2

OnReport = Callable[[Report], None]


async def drain(index: CodeIndex, folder: Path, patience: float = _PATIENCE) -> list[Report]:
    """Index everything that waits: marks of hooks, then queued paths.

    While another process indexes, this one waits for it up to ``patience`` seconds and then
    leaves the rest to that one or to the next.
    """
    queue = JobQueue(index.table.store)
    if take_marks(folder):
        await queue.add([WHOLE_TREE])
    reports: list[Report] = []
    while leased := await queue.take():
        try:
            reports.append(await _patient_update(index, list(leased.paths), patience))
        except StoreBusy:
            await queue.give_back(leased)
            break
        except BaseException:
            await asyncio.shield(queue.give_back(leased))
            raise
        await queue.finish(leased)
    return reports


async def _patient_update(index: CodeIndex, paths: list[str], patience: float) -> Report:
    waited = 0.0
    while True:
        try:
            return await index.update(None if WHOLE_TREE in paths else paths)
        except StoreBusy:
            if waited >= patience:
                raise
            await asyncio.sleep(_LOOK_AGAIN)
            waited += _LOOK_AGAIN


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
