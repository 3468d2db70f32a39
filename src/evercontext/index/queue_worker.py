"""Work through the queue of paths to index, which hooks, a watcher or a command fill."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from evercontext.errors import EverContextError, NotFound, ProcessProblem, StoreBusy
from evercontext.index.code_search import CodeIndex
from evercontext.index.commit_index import CommitIndexer
from evercontext.index.git_hook import set_marks_aside
from evercontext.index.ignore_files import NAMES
from evercontext.index.indexer import IndexReport
from evercontext.index.update_queue import WHOLE_TREE, JobQueue, Leased
from evercontext.index.walker import Walker

_PATIENCE = 30.0
_LOOK_AGAIN = 120.0
"""Seconds after which a watched tree is looked at as a whole."""

OnReport = Callable[[IndexReport], None]
OnProblem = Callable[[EverContextError], None]


async def drain(
    index: CodeIndex, folder: Path, patience: float = _PATIENCE, *, commits: bool = False
) -> list[IndexReport]:
    """Index everything that waits: commits that hooks have marked, then queued paths.

    While another process indexes, this one waits for it up to ``patience`` seconds and then
    leaves the rest to that one or to the next. ``commits`` looks for commits without a mark too.
    """
    queue = JobQueue(index.table.store)
    reports: list[IndexReport] = []
    try:
        async with index.indexer.lease.hold(patience):
            # Rows are worked on by the holder of the lease alone: an earlier one has died.
            await queue.free()
            if await _take_marks(queue, folder) or commits:
                reports.append(await CommitIndexer(index.indexer).run())
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


async def _update(index: CodeIndex, queue: JobQueue, leased: Leased) -> IndexReport:
    whole_tree = WHOLE_TREE in leased.paths
    try:
        report = await index.update(None if whole_tree else list(leased.paths))
    except BaseException:
        await asyncio.shield(queue.give_back(leased))
        raise
    await queue.finish(leased)
    return report


async def changes(root: Path, walker: Walker, stop: asyncio.Event) -> AsyncIterator[list[str]]:
    """Yield the paths that changed below a root, as the system reports them.

    The first one is the whole tree, as soon as the system watches it: nothing that happens in
    between is missed. Later it comes again now and then, because reports can be lost.
    """
    from watchfiles import Change, awatch

    def is_watched(change: Change, path: str) -> bool:
        return walker.may_hold(Path(path).relative_to(root).parts)

    looked = -_LOOK_AGAIN
    async for batch in awatch(
        root,
        watch_filter=is_watched,
        stop_event=stop,
        step=100,
        debounce=800,
        rust_timeout=1_000,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        if not os.access(root, os.F_OK):
            raise NotFound(f"the tree is gone: {root}")
        paths = {Path(path).relative_to(root).as_posix() for _, path in batch}
        if time.monotonic() - looked >= _LOOK_AGAIN or any(Path(p).name in NAMES for p in paths):
            looked = time.monotonic()
            yield [WHOLE_TREE]
            continue
        # What is no file (any more) may have been a folder of files.
        changed = sorted(p for p in paths if walker.wants(p) or not (root / p).is_file())
        if changed:
            yield changed


async def watch(
    index: CodeIndex,
    folder: Path,
    stop: asyncio.Event,
    on_report: OnReport | None = None,
    on_problem: OnProblem | None = None,
) -> None:
    """Keep the index fresh until ``stop`` is set; a problem is told, and tried again later."""
    queue = JobQueue(index.table.store)
    root = index.indexer.walker.root
    try:
        async for paths in changes(root, index.indexer.walker, stop):
            try:
                await queue.add(paths)
                reports = await drain(index, folder)
            except EverContextError as problem:
                if on_problem is None:
                    raise
                on_problem(problem)
                continue
            for report in reports:
                if on_report and (report.touched or report.requested or report.trouble):
                    on_report(report)
    except OSError as problem:
        raise ProcessProblem(
            f"the system does not watch this tree: {problem.strerror or problem}",
            fix="Raise fs.inotify.max_user_watches, or use: evercontext hook install",
        ) from problem
