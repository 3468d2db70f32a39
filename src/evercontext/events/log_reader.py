"""Read the event log: whole segments, one trace, or new lines as they are written."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

from evercontext.domain.event import Event, Task

_PAUSE = 0.2


def segments(directory: Path) -> list[Path]:
    """Every segment, oldest first."""
    if not directory.is_dir():
        return []
    dated = []
    for path in directory.glob("*.jsonl"):
        # Somebody may be clearing old traces away just now.
        with suppress(FileNotFoundError):
            about = path.stat()
            if stat.S_ISREG(about.st_mode):
                dated.append((path.name[:10], about.st_mtime, path))
    return [path for *_, path in sorted(dated)]


def read(segment: Path, *kinds: str) -> Iterator[Event]:
    """Yield the events of a segment, or only some kinds; a line cut by a crash is passed over."""
    # Lines of other kinds are not even parsed: a list of tasks must not cost their whole history.
    marks = [f'"type":"{kind}"'.encode() for kind in kinds]
    with segment.open("rb") as lines:
        for line in lines:
            if marks and not any(mark in line for mark in marks):
                continue
            event = _parse(line)
            if event:
                yield event


def read_trace(directory: Path, trace_id: str, segment: Path | None = None) -> list[Event]:
    """The events of one trace in order; ``trace_id`` may be any unique beginning."""
    places = segments(directory)
    if segment and segment in places:
        # Its process may have begun others since: at midnight, or when this one was full.
        process = process_of(segment)
        places = [path for path in places if process_of(path) == process and path >= segment]
    needle = trace_id.encode()
    matches = []
    for place in places:
        if needle not in place.read_bytes():
            continue
        matches += [event for event in read(place) if event.trace_id.startswith(trace_id)]
    return sorted(matches, key=lambda event: event.id)


def process_of(segment: Path) -> str:
    """Return the number of the process that writes a segment; empty where the name has none."""
    return "".join(segment.stem.split("-")[3:4])


def is_written(segment: Path) -> bool:
    """True if the process that writes this segment is still there; its number is in the name."""
    try:
        os.kill(int(process_of(segment)), 0)
    except PermissionError:
        return True
    except (ValueError, OSError, OverflowError):
        return False
    return True


def running_traces(directory: Path) -> set[str]:
    """Return the tasks that were begun by processes that are still there."""
    traces: set[str] = set()
    for segment in filter(is_written, segments(directory)):
        with suppress(FileNotFoundError):
            traces.update(event.trace_id for event in read(segment, Task.type))
    return traces


async def follow(directory: Path) -> AsyncIterator[Event]:
    """Yield events as any process writes them, from now on."""
    offsets = {path: path.stat().st_size for path in segments(directory)}
    while True:
        for path in segments(directory):
            async for event in _new_lines(path, offsets):
                yield event
        await asyncio.sleep(_PAUSE)


async def _new_lines(path: Path, offsets: dict[Path, int]) -> AsyncIterator[Event]:
    start = offsets.get(path, 0)
    fresh = await asyncio.to_thread(_read_from, path, start)
    complete_lines = fresh[: fresh.rfind(b"\n") + 1]
    offsets[path] = start + len(complete_lines)
    for line in complete_lines.splitlines():
        event = _parse(line)
        if event:
            yield event


def _read_from(path: Path, start: int) -> bytes:
    with path.open("rb") as lines:
        lines.seek(start)
        return lines.read()


def _parse(line: bytes) -> Event | None:
    try:
        return Event.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
