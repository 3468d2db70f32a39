"""Read from the event log how many tests ran earlier, to notice tests that disappeared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evercontext.domain.event import Task, Verification
from evercontext.domain.tool import Caller
from evercontext.events.log_reader import read, segments

MOST_SEGMENTS = 50
"""Older segments say nothing about the tests of today."""


@dataclass(frozen=True, slots=True)
class EarlierTestCounts:
    """Count the tests that the same command ran earlier in the same project."""

    traces: Path
    root: Path
    count: Callable[[Mapping[str, int]], int]
    """Return how many tests ran, from the counts of a check."""

    async def __call__(self, command: tuple[str, ...], caller: Caller) -> int:
        """Return the most of this task or of the last task before it; 0 if none is known."""
        return await asyncio.to_thread(self._search, command, caller.trace_id)

    def _search(self, command: tuple[str, ...], trace_id: str) -> int:
        own = 0
        for segment in reversed(segments(self.traces)[-MOST_SEGMENTS:]):
            here, earlier = self._counts_in(segment, command, trace_id)
            own = max(own, here)
            if earlier:
                return max(own, earlier)
        return own

    def _counts_in(self, segment: Path, command: tuple[str, ...], trace_id: str) -> tuple[int, int]:
        """Return the counts of this task and of the last earlier task in one segment."""
        roots: dict[str, Path] = {}
        own, earlier = 0, 0
        for event in read(segment, Task.type, Verification.type):
            match event.body:
                case Task(root=root):
                    roots[event.trace_id] = Path(root).resolve()
                case Verification(command=checked, counts=counts) if tuple(checked) == command:
                    if event.trace_id == trace_id:
                        own = max(own, self.count(counts))
                    elif roots.get(event.trace_id) == self.root:
                        earlier = self.count(counts) or earlier
        return own, earlier
