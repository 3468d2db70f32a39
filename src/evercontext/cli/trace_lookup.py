"""Finding traces in the event log: the newest ones, and one by the beginning of its id."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evercontext.domain.event import EvaluationState, Event, Final, Task
from evercontext.domain.tool import Mode
from evercontext.errors import EverContextError, NotFound, UsageError
from evercontext.events.log_reader import is_written, read, read_trace, segments

if TYPE_CHECKING:
    from evercontext.files.task_changes import TakenBack

EVALUATION = "evaluation"
"""The mode of a trace that is no task, but the judgement of a document."""
_ENDED = {"done": "done", "needs improvement": "not passed", "failed": "failed"}
_LOOKED_AT = 200
_TICK = 2.0
"""Seconds by which the time of a file may lie behind that of the last event in it."""


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


def newest(directory: Path, limit: int, root: Path | None = None) -> list[Summary]:
    """The newest tasks and evaluations first, of one project or of all."""
    summaries: dict[str, Summary] = {}
    later: dict[str, Final] = {}
    here = str(root.resolve()) if root else None
    for segment in reversed(segments(directory)):
        if _enough(summaries, limit, segment):
            break
        # A task that was taken up again is in two segments, and the later one says how it ended.
        # One that ran past midnight begins in one and ends in the next.
        for trace_id, summary in _summaries(segment, later).items():
            known = summaries.get(trace_id)
            if (known is None or known.mode == EVALUATION) and _is_of(summary, here):
                summaries[trace_id] = summary
    # Reversed, not sorted the other way round: of two that began at once the later one leads.
    return sorted(summaries.values(), key=lambda summary: summary.started)[::-1][:limit]


def _is_of(summary: Summary, here: str | None) -> bool:
    """True for what belongs to a project; what does not say where it began belongs to all."""
    return here is None or summary.root in ("", here) or os.path.realpath(summary.root) == here


def _enough(summaries: Mapping[str, Summary], limit: int, segment: Path) -> bool:
    """True if no task of this segment can be among the newest ones."""
    if len(summaries) < limit:
        return False
    oldest = sorted((summary.started for summary in summaries.values()), reverse=True)[limit - 1]
    try:
        return segment.stat().st_mtime < datetime.fromisoformat(oldest).timestamp() - _TICK
    except FileNotFoundError:
        return False


def _summaries(segment: Path, later: dict[str, Final]) -> dict[str, Summary]:
    """The tasks begun in a segment; ``later`` holds the endings that newer segments told."""
    tasks: dict[str, Summary] = {}
    judged: dict[str, Summary] = {}
    endings: dict[str, Final] = {}
    for event in read(segment, Task.type, Final.type, EvaluationState.type):
        match event.body:
            case EvaluationState() as state:
                _judged(judged, event, state)
            case Task() as task:
                tasks[event.trace_id] = _begun(event, task)
                endings.pop(event.trace_id, None)
            case Final() as final:
                endings[event.trace_id] = final
    later.update({trace: final for trace, final in endings.items() if trace not in later})
    for trace_id, summary in tasks.items():
        if ended := later.pop(trace_id, None):
            _end(summary, ended)
        elif not is_written(segment):
            summary.status = "cut off"
    for summary in judged.values():
        if summary.status == "running" and not is_written(segment):
            summary.status = "cut off"
    # What a task had judged is part of that task.
    return judged | tasks


def _judged(known: dict[str, Summary], event: Event, state: EvaluationState) -> None:
    """Note what an event says of an evaluation; a trace may hold several of one document."""
    document = state.document
    if state.root and Path(document).is_relative_to(state.root):
        document = str(Path(document).relative_to(state.root))
    about = f"evaluate {document}".strip()
    start = Summary(event.trace_id, event.at, about, "", state.root, EVALUATION, door="evaluate")
    summary = known.setdefault(event.trace_id, start)
    summary.status = _ENDED.get(state.state, "running")


def count_written(summaries: Iterable[Summary], home: Path) -> None:
    """Count the files of tasks that told no ending: the journal knows what they wrote."""
    open_tasks = [
        summary for summary in summaries if summary.exit_code is None and summary.mode == Mode.AGENT
    ]
    if not open_tasks:
        return
    from evercontext.files.journal import written

    roots = {summary.root for summary in open_tasks}
    known = {root: written(home, Path(root).resolve()) for root in roots}
    for summary in open_tasks:
        summary.changed = len(known[summary.root].get(summary.trace_id, ()))


def taken_back(events: Iterable[Event], home: Path) -> TakenBack | None:
    """Return how much of a task an undo took back, as the journal knows it; ``None``: nothing."""
    from evercontext.files.task_changes import Extent, find_undo

    for event in events:
        if isinstance(event.body, Task) and event.body.mode == Mode.AGENT:
            with suppress(EverContextError, OSError):
                undone = find_undo(home, Path(event.body.root).resolve(), event.trace_id)
                return undone if undone.extent in (Extent.PART, Extent.ALL) else None
    return None


def _begun(event: Event, task: Task) -> Summary:
    about = (task.text, task.model, task.root, str(task.mode))
    return Summary(event.trace_id, event.at, *about, door=str(task.door))


def _end(summary: Summary, final: Final) -> None:
    summary.status, summary.exit_code = final.status, final.exit_code
    summary.duration_ms, summary.changed = final.duration_ms, len(final.changed)


def resolve(directory: Path, prefix: str | None, root: Path | None = None) -> str:
    """The one trace id that begins so; without a beginning, the newest one of the project."""
    if prefix is None:
        last = newest(directory, 1, root)
        if not last:
            where = " of this project" if root else ""
            raise NotFound(f"there is no trace{where} yet", fix="Run a task first, or say --all")
        return last[0].trace_id
    return only({event.trace_id for event in read_trace(directory, prefix.lower())}, prefix)


def resumable(directory: Path, root: Path) -> list[Summary]:
    """The newest tasks of this project first that were to change something."""
    return [
        summary
        for summary in newest(directory, _LOOKED_AT, root)
        if summary.door == "run" and summary.mode == Mode.AGENT
    ]


def events_of(directory: Path, prefix: str | None, root: Path | None = None) -> list[Event]:
    """Every event of one trace in order."""
    return read_trace(directory, resolve(directory, prefix, root))


def only(matches: set[str], prefix: str) -> str:
    """The one id among those found, or an error that helps."""
    if not matches:
        raise NotFound(f"there is no trace {prefix[:64]!r}", fix="See `evercontext trace list`")
    if len(matches) > 1:
        some = ", ".join(sorted(matches)[:4])
        raise UsageError(f"{prefix[:64]!r} fits {len(matches)} traces", fix=f"One of: {some}")
    return matches.pop()
