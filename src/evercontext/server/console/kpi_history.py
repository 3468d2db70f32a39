"""Collect the events that KPIs are computed from; a segment is read again only if it has grown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from evercontext.domain.event import Audit, Event
from evercontext.events import log_reader
from evercontext.events.kpi import KINDS, is_telling

REFUSED = frozenset({401, 403})


@dataclass(slots=True)
class KpiHistory:
    """The telling events of a log, and the requests that were turned away."""

    directory: Path
    _read: dict[Path, tuple[int, list[Event]]] = field(default_factory=dict)

    def since(self, day: str) -> list[Event]:
        """Those of the segments from a day on, such as ``2026-05-01``."""
        places = [p for p in log_reader.segments(self.directory) if p.name[:10] >= day]
        return [event for place in places for event in self._segment(place)]

    def _segment(self, place: Path) -> list[Event]:
        try:
            size = place.stat().st_size
            if place not in self._read or self._read[place][0] != size:
                events = [event for event in log_reader.read(place, *KINDS) if _is_kept(event)]
                self._read[place] = size, events
        except FileNotFoundError:
            return []
        return self._read[place][1]


def _is_kept(event: Event) -> bool:
    refused = isinstance(event.body, Audit) and event.body.status in REFUSED
    return refused or is_telling(event)
