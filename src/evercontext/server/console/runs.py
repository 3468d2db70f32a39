"""List runs; show one with its events and changes; undo it."""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache
from typing import Any

from evercontext.agent.task_undo import undo_task, undoable
from evercontext.app import EverContext
from evercontext.domain.tool import Door
from evercontext.errors import NotFound
from evercontext.events.log_index import Ledger, Run
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute

PAGE = 50
MOST_EVENTS = 500
MOST_DIFFS = 200
FRAMING = frozenset(
    {
        "task",
        "plan",
        "task_began",
        "task_ended",
        "evidence",
        "recalled",
        "verification",
        "repair",
        "rolled_back",
        "final",
    }
)
_LONGEST = 600
"""Characters of one text in a row of the timeline; the whole is asked for by itself."""
_SPOKEN = frozenset({"task", "model_reply", "final"})
_LONGEST_SPOKEN = 40_000
"""Characters of what a person or the model says: that is read where it stands."""


@lru_cache(maxsize=1_000)
def real_path(root: str) -> str:
    """A root's one name, whatever links led to it when its task ran."""
    return os.path.realpath(root)


async def list_runs(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET runs``: newest first, a page at a time."""
    everywhere, here = request.query.get("project") == "all", request.app.memory.path
    words = request.query.get("q", "").casefold()[:200].split()
    start, limit = request.number("start", 0, 10**9), request.number("limit", PAGE, 200)
    state = request.query.get("status", "")

    def read(ledger: Ledger) -> dict[str, Any]:
        matches = [
            run
            for run in ledger.tasks()
            if (everywhere or real_path(run.root) == here)
            and all(word in f"{run.text} {run.trace_id} {run.model}".casefold() for word in words)
            and (not state or _group(ledger.status_of(run)) == state)
        ]
        rows = [summary(ledger, run) for run in matches[start : start + limit]]
        return {"runs": rows, "total": len(matches), "start": start}

    return await request.feed.look(read)


def _group(status: str) -> str:
    return status if status in ("running", "done") else "failed"


def summary(ledger: Ledger, run: Run) -> dict[str, Any]:
    """A run as the list shows it."""
    return {**run.to_json(), "status": ledger.status_of(run)}


def find(ledger: Ledger, trace_id: str) -> Run:
    """One run, or ``NotFound``."""
    run = ledger.runs.get(trace_id)
    if run is None:
        raise NotFound(f"there is no run {trace_id[:64]!r}", fix="See `evercontext trace list`")
    return run


async def show_run(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET runs/*``: its summary and what frames it."""
    trace_id = request.parts[0]

    def read(ledger: Ledger) -> dict[str, Any]:
        run = find(ledger, trace_id)
        # What frames a run is at its beginning and at its end, however long it is between.
        edges = [*run.places[:MOST_EVENTS], *run.places[MOST_EVENTS:][-MOST_EVENTS:]]
        frame = [event for event in ledger.read(edges) if event["type"] in FRAMING]
        return {"run": summary(ledger, run), "frame": frame}

    answer = await request.feed.look(read)
    app = await _app_of(request, answer["run"]["root"])
    journal_run = await undoable(app, trace_id)
    answer["here"] = request.work.of(trace_id) is not None
    answer["memories"] = await _recalled(request, answer["frame"])
    answer["undo"] = {
        "possible": bool(journal_run and journal_run.stands),
        "undone": bool(journal_run and journal_run.undone),
        "files": list(journal_run.paths) if journal_run else [],
    }
    return answer


async def _app_of(request: ConsoleRequest, root: str) -> EverContext:
    """Return the parts of the project that a run was in, or our own where it is not registered."""
    place = await asyncio.to_thread(real_path, root) if root else request.app.memory.path
    known = place in await request.work.projects()
    return await request.work.app_of(place) if known else request.app


async def _recalled(request: ConsoleRequest, frame: list[dict[str, Any]]) -> dict[str, str]:
    """The words of the memories that the model was shown; what was forgotten has none."""
    shown = [event["data"]["memories"] for event in frame if event["type"] == "recalled"]
    ids = [id for group in shown for id in group]
    memory = request.app.memory
    memories = [await memory.memories.get(id, project=memory.project) for id in ids[:50]]
    return {entry.id: entry.content[:400] for entry in memories if entry}


async def list_events(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET runs/*/events``: a window of the timeline, long texts cut."""
    start, limit = request.number("start", 0, 10**9), request.number("limit", 100, MOST_EVENTS)

    def read(ledger: Ledger) -> dict[str, Any]:
        run = find(ledger, request.parts[0])
        events = [row(event) for event in ledger.events(run, start, limit)]
        return {"events": events, "start": start, "total": len(run.places)}

    return await request.feed.look(read)


async def show_event(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET runs/*/events/*``: one event whole, by its position."""
    place = request.parts[1]
    if not place.isascii() or not place.isdigit() or len(place) > 12:
        raise NotFound("there is no such event")

    def read(ledger: Ledger) -> dict[str, Any]:
        events = ledger.events(find(ledger, request.parts[0]), int(place), 1)
        if not events:
            raise NotFound("there is no such event")
        return events[0]

    return await request.feed.look(read)


async def list_diffs(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET runs/*/diffs``: what it changed, file by file, in order."""

    def read(ledger: Ledger) -> dict[str, Any]:
        run = find(ledger, request.parts[0])
        diffs: list[dict[str, Any]] = []
        for start in range(0, len(run.places), MOST_EVENTS):
            if len(diffs) >= min(MOST_DIFFS, run.diffs):
                break
            events = ledger.events(run, start, MOST_EVENTS)
            diffs += [event["data"] for event in events if event["type"] == "diff"]
        return {"diffs": diffs[:MOST_DIFFS], "total": run.diffs}

    return await request.feed.look(read)


def row(event: dict[str, Any]) -> dict[str, Any]:
    """An event with its long texts cut, marked where something is missing."""
    data = event.get("data") or {}
    shown = _cut(data)
    if event.get("type") in _SPOKEN and isinstance(data.get("text"), str):
        text = data["text"]
        shown["text"] = text if len(text) <= _LONGEST_SPOKEN else text[:_LONGEST_SPOKEN] + "…"
    return {**event, "data": shown}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST:
        return value[:_LONGEST] + "…"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in list(value.items())[:40]}
    if isinstance(value, list):
        return [_cut(item) for item in value[:40]]
    return value


async def undo_run(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``POST runs/*/undo``: take back what it changed, or say what that would do."""
    dry = request.switch("dry_run")
    run = await request.feed.look(lambda ledger: ledger.runs.get(request.parts[0]))
    app = await _app_of(request, run.root if run else "")
    done = await undo_task(app, request.parts[0], dry_run=dry, door=Door.REST)
    return done.as_json()


ROUTES = (
    ConsoleRoute("GET", "runs", list_runs),
    ConsoleRoute("GET", "runs/*", show_run),
    ConsoleRoute("GET", "runs/*/events", list_events),
    ConsoleRoute("GET", "runs/*/events/*", show_event),
    ConsoleRoute("GET", "runs/*/diffs", list_diffs),
    ConsoleRoute("POST", "runs/*/undo", undo_run),
)
