"""Finding traces in the event log: the newest ones, and one by the beginning of its id."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evercontext.domain.event import Event, Final, Task
from evercontext.errors import NotFound, UsageError
from evercontext.events.segments import read, read_trace, segments

_LOOKED_AT = 200


@dataclass(slots=True)
class Summary:
    """One task in a list."""

    trace_id: str
    started: str
    text: str
    model: str
    root: str
    mode: str
    status: str = "running"
    exit_code: int | None = None
    duration_ms: int | None = None
    changed: int = 0
    door: str = "run"

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return dataclasses.asdict(self)


def newest(directory: Path, limit: int) -> list[Summary]:
    """The newest tasks first."""
    found: dict[str, Summary] = {}
    # A task begins and ends in one segment; segments are read until enough tasks are known. One
    # that was taken up again is in two, and the later one says how it ended.
    for segment in reversed(segments(directory)):
        found = {summary.trace_id: summary for summary in _summaries(segment)} | found
        if len(found) >= limit:
            break
    return sorted(found.values(), key=lambda one: one.started, reverse=True)[:limit]


def _summaries(segment: Path) -> Iterator[Summary]:
    open_tasks: dict[str, Summary] = {}
    for event in read(segment, Task.type, Final.type):
        match event.body:
            case Task() as task:
                open_tasks[event.trace_id] = _begun(event, task)
            case Final() as final if event.trace_id in open_tasks:
                _end(open_tasks[event.trace_id], final)
    for summary in open_tasks.values():
        if summary.exit_code is None and not _is_written(segment):
            summary.status = "cut off"
        yield summary


def _is_written(segment: Path) -> bool:
    """True if the process that writes this segment is still there; its number is in the name."""
    try:
        os.kill(int(segment.stem.split("-")[3]), 0)
    except (IndexError, ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _begun(event: Event, task: Task) -> Summary:
    about = (task.text, task.model, task.root, str(task.mode))
    return Summary(event.trace_id, event.at, *about, door=str(task.door))


def _end(summary: Summary, final: Final) -> None:
    summary.status, summary.exit_code = final.status, final.exit_code
    summary.duration_ms, summary.changed = final.duration_ms, len(final.changed)


def resolve(directory: Path, prefix: str | None) -> str:
    """The one trace id that begins so; without a beginning, the newest task."""
    if prefix is None:
        last = newest(directory, 1)
        if not last:
            raise NotFound("there is no trace yet", fix="Run a task first")
        return last[0].trace_id
    return only({event.trace_id for event in read_trace(directory, prefix.lower())}, prefix)


def cut_off(directory: Path, root: Path) -> str:
    """The newest task of this project that was to change something and did not end well."""
    for one in newest(directory, _LOOKED_AT):
        here = Path(one.root).resolve() == root.resolve()
        if here and one.door == "run" and one.mode != "plan" and one.status != "done":
            return one.trace_id
    raise NotFound("no task was cut off here", fix="See `evercontext trace list`")


def events_of(directory: Path, prefix: str | None) -> list[Event]:
    """Every event of one trace in order."""
    return read_trace(directory, resolve(directory, prefix))


def only(found: set[str], prefix: str) -> str:
    """The one id among those found, or an error that helps."""
    if not found:
        raise NotFound(f"there is no trace {prefix[:64]!r}", fix="See `evercontext trace list`")
    if len(found) > 1:
        some = ", ".join(sorted(found)[:4])
        raise UsageError(f"{prefix[:64]!r} fits {len(found)} traces", fix=f"One of: {some}")
    return found.pop()
