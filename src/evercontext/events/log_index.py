"""Index where every event of every trace lies, for quick reads of a long log.

The segments stay the truth: this holds sixteen bytes per event and one summary per task, and reads
only what was added since it last looked. Nothing here is kept; a new process reads again.
"""

from __future__ import annotations

import json
import re
import time
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evercontext.events.log_reader import is_written, segments

_HEAD = re.compile(
    rb'\{"id":"([0-9a-f]{16})[0-9a-f]{8}","at":"([^"]{10,40})","trace_id":"([^"\\]{1,200})",'
    rb'"parent":(?:null|"[0-9a-f]{24}"),"v":\d+,"type":"([a-z_]{1,40})"'
)
_SUMMARISED_KINDS = frozenset(
    {"task", "final", "model_reply", "spent", "approval", "audit", "step", "diff", "plan"}
)
_TICK = 2_000_000_000
_BITS = 40
"""A place is one number: the segment's above, the offset's below."""
_COUNTS = ("turns", "input_tokens", "output_tokens", "cost_usd")
MOST_AUDITS = 5_000
MOST_LOOSE = 5_000
"""Traces without a task, such as single requests, that are remembered."""
MOST_AT_ONCE = 64 * 1024 * 1024
"""Bytes read in one go."""


@dataclass(slots=True)
class Run:
    """One task: what its events said so far, and where they lie."""

    trace_id: str
    place: int = 0
    """The segment its process writes."""
    moments: array[int] = field(default_factory=lambda: array("Q"))
    """Nanoseconds of each event, as its id begins."""
    places: array[int] = field(default_factory=lambda: array("Q"))
    started: str = ""
    ended: str | None = None
    last_id: str = ""
    last_at: str = ""
    text: str = ""
    root: str = ""
    model: str = ""
    mode: str = ""
    door: str = ""
    session: str | None = None
    status: str = "running"
    exit_code: int | None = None
    turns: int = 0
    steps: int = 0
    diffs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    duration_ms: int | None = None
    changed: tuple[str, ...] = ()
    verified: str | None = None
    before: tuple[float, ...] = (0, 0, 0, 0)
    """Turns, tokens and cost of earlier beginnings, where a task was taken up again."""
    plan: int = 0
    """Tasks of its plan, where it has one of several."""

    def to_json(self) -> dict[str, Any]:
        """The summary as one JSON object."""
        left_out = ("moments", "places", "place", "before")
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in left_out}
        return {**fields, "events": len(self.places), "changed": list(self.changed)}


class Ledger:
    """Reads the log of a home as it grows. Not for several threads at once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._paths: list[Path] = []
        self._offsets: dict[Path, int] = {}
        self._numbers: dict[Path, int] = {}
        self.runs: dict[str, Run] = {}
        """Every trace, those of single calls too; ``started`` is empty where no task began."""
        self._loose: dict[str, None] = {}
        self._open: list[Path] = []
        self._listed = 0
        self.audits: deque[int] = deque(maxlen=MOST_AUDITS)
        """Places of the newest requests to the servers."""
        self.calls: Counter[str] = Counter()
        """How often each tool was called."""
        self.version = 0
        """Grows with every event that was read."""

    def refresh(self) -> list[str]:
        """Take in what was written since; return the traces that have something new."""
        touched: dict[str, None] = {}
        open_still = []
        yesterday = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
        for path in self._growing():
            if path not in self._numbers:
                self._numbers[path] = len(self._paths)
                self._paths.append(path)
            with suppress(FileNotFoundError):
                size = path.stat().st_size
                if size > self._offsets.get(path, 0):
                    touched |= dict.fromkeys(self._read_on(path))
                # A process begins another segment when the day ends.
                if path.name[:10] >= yesterday or self._offsets.get(path, 0) < size:
                    open_still.append(path)
        self._open = open_still
        return list(touched)

    def _growing(self) -> list[Path]:
        """The segments that may have grown; all of them once there may be another one."""
        try:
            changed = self._directory.stat().st_mtime_ns
        except OSError:
            return []
        # A clock's tick is long: a file that came right after the listing may not show in it.
        if changed != self._listed or time.time_ns() - changed < _TICK:
            self._listed = changed
            self._open = segments(self._directory)
        return self._open

    def tasks(self) -> list[Run]:
        """The tasks, newest first."""
        started = [run for run in self.runs.values() if run.started]
        # Reversed, not sorted the other way round: of two that began at once the later one leads.
        return sorted(started, key=lambda run: run.started)[::-1]

    def status_of(self, run: Run) -> str:
        """How a task stands; one whose process is gone was cut off."""
        if run.status != "running" or is_written(self._paths[run.place]):
            return run.status
        return "cut off"

    def events(self, run: Run, start: int, limit: int) -> list[dict[str, Any]]:
        """Events of one trace by their position."""
        return self.read(run.places[max(0, start) : max(0, start) + limit])

    def after(self, run: Run, event_id: str, limit: int) -> tuple[int, list[dict[str, Any]]]:
        """Events of one trace that came after one of them, and the first one's position."""
        start = bisect_right(run.moments, moment_of(event_id))
        return start, self.events(run, start, limit)

    def read(self, places: Iterable[int]) -> list[dict[str, Any]]:
        """The events at these places; what cannot be read any more is left out."""
        numbered = []
        by_segment: dict[int, list[int]] = {}
        for order, place in enumerate(places):
            by_segment.setdefault(place >> _BITS, []).append(order << 64 | place)
        for number, keys in by_segment.items():
            with suppress(OSError), self._paths[number].open("rb") as lines:
                for both in keys:
                    lines.seek(both & (1 << _BITS) - 1)
                    with suppress(ValueError):
                        numbered.append((both >> 64, json.loads(lines.readline())))
        return [event for _, event in sorted(numbered, key=lambda pair: pair[0])]

    def _read_on(self, path: Path) -> Sequence[str]:
        start = self._offsets.get(path, 0)
        with path.open("rb") as lines:
            lines.seek(start)
            fresh = lines.read(MOST_AT_ONCE)
        complete_lines = fresh[: fresh.rfind(b"\n") + 1]
        self._offsets[path] = start + len(complete_lines)
        touched, offset, number = [], start, self._numbers[path]
        for line in complete_lines.splitlines(keepends=True):
            if trace := self._take(line, number << _BITS | offset):
                touched.append(trace)
            offset += len(line)
        return touched

    def _take(self, line: bytes, place: int) -> str | None:
        head = _HEAD.match(line)
        if head is None:
            return None
        trace_id, kind = head[3].decode("utf-8", "replace"), head[4].decode()
        run = self.runs.get(trace_id)
        if run is None:
            run = self._meet(trace_id, place >> _BITS)
        # In a task an audit line repeats the step that it stands below.
        if kind != "audit" or not run.started:
            run.moments.append(int(head[1], 16))
            run.places.append(place)
        run.last_id, run.last_at = line[7:31].decode(), head[2].decode()
        self.version += 1
        if kind == "audit":
            self.audits.append(place)
        elif kind in _SUMMARISED_KINDS:
            self._tell(run, kind, line, place)
        return trace_id

    def _meet(self, trace_id: str, segment: int) -> Run:
        """A trace that is new; a busy gateway makes one for every request, so old ones go."""
        self._loose[trace_id] = None
        if len(self._loose) > MOST_LOOSE:
            oldest = next(iter(self._loose))
            del self._loose[oldest], self.runs[oldest]
        run = self.runs[trace_id] = Run(trace_id, segment)
        return run

    def _tell(self, run: Run, kind: str, line: bytes, place: int) -> None:
        if kind == "diff":
            run.diffs += 1
            return
        try:
            data = json.loads(line)["data"]
        except (ValueError, KeyError):
            return
        if kind == "step":
            run.steps += 1
            self.calls[str(data.get("tool"))] += 1
        elif kind == "task":
            self._begin(run, data, place)
        elif kind == "plan":
            run.plan = max(run.plan, len(data.get("tasks") or ()))
        elif kind == "model_reply":
            run.turns += 1
            _spend(run, data)
        elif kind == "spent":
            _spend(run, data)
        elif kind == "final":
            _end(run, data)

    def _begin(self, run: Run, data: dict[str, Any], place: int) -> None:
        self._loose.pop(run.trace_id, None)
        run.place, run.started = place >> _BITS, run.started or run.last_at
        run.text = run.text or str(data.get("text", ""))[:400]
        for name in ("root", "model", "mode", "door"):
            setattr(run, name, str(data.get(name) or ""))
        run.session = data.get("session")
        run.before = tuple(getattr(run, name) or 0 for name in _COUNTS)
        run.status, run.ended, run.exit_code = "running", None, None


def _spend(run: Run, data: dict[str, Any]) -> None:
    run.input_tokens += int(data.get("input_tokens") or 0)
    run.output_tokens += int(data.get("output_tokens") or 0)
    if data.get("cost_usd") is not None:
        run.cost_usd = (run.cost_usd or 0.0) + float(data["cost_usd"])


def _count_unreplied(run: Run, data: dict[str, Any]) -> None:
    """Count what only the ending tells: a planner's calls are no replies of their own."""
    for name, before in zip(_COUNTS, run.before, strict=True):
        counted, ended = getattr(run, name) or 0, before + (data.get(name) or 0)
        if ended > counted:
            setattr(run, name, ended)


def _end(run: Run, data: dict[str, Any]) -> None:
    _count_unreplied(run, data)
    run.status, run.exit_code = str(data.get("status")), data.get("exit_code")
    run.ended, run.duration_ms = run.last_at, data.get("duration_ms")
    run.changed = tuple(dict.fromkeys([*run.changed, *map(str, data.get("changed") or ())]))
    run.verified = data.get("verified")


def moment_of(event_id: str) -> int:
    """Nanoseconds of an event's id; 0 for what is no id."""
    try:
        return int(event_id[:16], 16) if len(event_id) == 24 else 0
    except ValueError:
        return 0
