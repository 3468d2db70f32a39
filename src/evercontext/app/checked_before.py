"""How many tests ran the time before: what a green run is measured against."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from evercontext.domain.event import Task, Verification
from evercontext.domain.tool import Caller
from evercontext.events.log_reader import read, segments
from evercontext.workspace.check_counts import ran

MOST_SEGMENTS = 50
"""What is older than that is no measure for today."""


@dataclass(frozen=True, slots=True)
class CheckedBefore:
    """Reads in the event log what the same command ran in the same project."""

    traces: Path
    root: Path

    async def __call__(self, command: tuple[str, ...], caller: Caller) -> int:
        """The most of this task, or of the last task before it; 0 where nobody knows."""
        return await asyncio.to_thread(self._look, command, caller.trace_id)

    def _look(self, command: tuple[str, ...], trace_id: str) -> int:
        own = 0
        for segment in reversed(segments(self.traces)[-MOST_SEGMENTS:]):
            here, earlier = self._of(segment, command, trace_id)
            own = max(own, here)
            if earlier:
                return max(own, earlier)
        return own

    def _of(self, segment: Path, command: tuple[str, ...], trace_id: str) -> tuple[int, int]:
        """What a segment says of this task, and of the last one of this project before it."""
        roots: dict[str, Path] = {}
        own, earlier = 0, 0
        for event in read(segment, Task.type, Verification.type):
            match event.body:
                case Task(root=root):
                    roots[event.trace_id] = Path(root).resolve()
                case Verification(command=given, counts=counts) if tuple(given) == command:
                    if event.trace_id == trace_id:
                        own = max(own, ran(counts))
                    elif roots.get(event.trace_id) == self.root:
                        earlier = ran(counts) or earlier
        return own, earlier
