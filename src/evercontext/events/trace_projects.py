"""Find the project of a trace in the event log."""

from __future__ import annotations

import os
from pathlib import Path

from evercontext.domain.event import EvaluationState, Event, Task
from evercontext.events.log_reader import read, segments

_BEGINNINGS = (Task.type, EvaluationState.type)


class Foreign:
    """The traces of other projects, known by how they began.

    ``log`` is where that is looked up, for who does not read from the beginning.
    """

    def __init__(self, root: Path, log: Path | None = None) -> None:
        self._log = log
        self._here = str(root.resolve())
        self._traces: dict[str, bool] = {}

    def holds(self, event: Event) -> bool:
        """True for an event of another project; what says nowhere where it began is nobody's."""
        if _root_of(event):
            self._note(event)
        elif event.trace_id not in self._traces:
            self._look_up(event.trace_id)
        return self._traces[event.trace_id]

    def _note(self, event: Event) -> None:
        self._traces[event.trace_id] = os.path.realpath(_root_of(event)) != self._here

    def _look_up(self, trace_id: str) -> None:
        """It began before anybody followed: only the log knows where."""
        self._traces[trace_id] = False
        places = segments(self._log) if self._log else []
        for segment in reversed(places):
            for event in read(segment, *_BEGINNINGS):
                if event.trace_id == trace_id and _root_of(event):
                    return self._note(event)


def _root_of(event: Event) -> str:
    return getattr(event.body, "root", "") if event.body.type in _BEGINNINGS else ""
