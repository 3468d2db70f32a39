"""Compute what is drawn: the time and context of one run, and runs by day and model."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from evercontext.app.models import window_of
from evercontext.events.log_index import Ledger, Run
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute
from evercontext.server.console.runs import MOST_EVENTS, find, real_path

MOST_READ = 5_000
"""Events of one run that are looked at; a longer one is drawn as far as that."""
MOST_BARS = 400
MOST_DAYS = 365


async def show_run_figures(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET runs/*/figures``: model and tool time, context by turn, changes by file."""

    def read(ledger: Ledger) -> dict[str, Any]:
        run = find(ledger, request.parts[0])
        events: list[dict[str, Any]] = []
        for start in range(0, min(MOST_READ, len(run.places)), MOST_EVENTS):
            events += ledger.events(run, start, MOST_EVENTS)
        return {**_fold(run, events), "complete": len(run.places) <= MOST_READ}

    return await request.feed.look(read)


def _fold(run: Run, events: list[dict[str, Any]]) -> dict[str, Any]:
    began = _moment(run.started) if run.started else 0.0
    bars: list[dict[str, Any]] = []
    context: list[dict[str, Any]] = []
    files: dict[str, list[int]] = {}
    steps: dict[str, dict[str, Any]] = {}
    for event in events:
        kind, data, at = event["type"], event["data"], _moment(event["at"]) - began
        if kind == "model_reply":
            ms = data.get("duration_ms", 0)
            bars.append(_bar("model", data.get("model", ""), at - ms, ms))
            if data.get("input_tokens"):
                context.append(_turn(data))
        elif kind == "step":
            steps[event["id"]] = _bar("tool", data.get("tool", ""), at, 0)
        elif kind == "tool_result" and (bar := steps.pop(event.get("parent") or "", None)):
            bars.append({**bar, "ms": data.get("duration_ms", 0), "ok": bool(data.get("ok"))})
        elif kind == "diff" and data.get("applied", True):
            size = files.setdefault(data["path"], [0, 0])
            size[0] += data["added"]
            size[1] += data["removed"]
    ordered = sorted(bars, key=lambda bar: bar["start"])
    changed = [{"path": path, "added": a, "removed": r} for path, (a, r) in files.items()]
    return {"bars": ordered[:MOST_BARS], "context": context, "files": changed}


def _bar(kind: str, name: str, start: float, ms: float) -> dict[str, Any]:
    return {"kind": kind, "name": name, "start": max(0, round(start)), "ms": ms, "ok": True}


def _turn(data: dict[str, Any]) -> dict[str, Any]:
    size = window_of(str(data.get("model", "")))
    return {"tokens": data["input_tokens"] + data.get("output_tokens", 0), "window": size}


def _moment(text: str) -> float:
    """Return a moment in milliseconds."""
    return datetime.fromisoformat(text).timestamp() * 1000


async def show_usage(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET usage``: runs, tokens and cost by day, and by model."""
    days = max(1, request.number("days", 30, MOST_DAYS))
    everywhere, here = request.query.get("project") == "all", request.app.memory.path
    begin = f"{datetime.now(UTC) - timedelta(days=days - 1):%Y-%m-%d}"

    def read(ledger: Ledger) -> dict[str, Any]:
        runs = [
            (run, ledger.status_of(run))
            for run in ledger.tasks()
            if run.started[:10] >= begin and (everywhere or real_path(run.root) == here)
        ]
        one_day = len({run.started[:10] for run, _ in runs}) == 1
        return {"days": _by(runs, 13 if one_day else 10), "models": _by_model(runs), "begin": begin}

    return await request.feed.look(read)


def _by(runs: list[tuple[Run, str]], length: int) -> list[dict[str, Any]]:
    """Return the sums of each day, or of each hour: so much of a moment as ``length`` says."""
    sums: dict[str, dict[str, Any]] = {}
    for run, status in sorted(runs, key=lambda pair: pair[0].started):
        key = run.started[:length]
        row = sums.setdefault(key, {"at": key, "runs": 0, "failed": 0, **_nothing()})
        row["runs"] += 1
        row["failed"] += status not in ("done", "running")
        _spend(row, run)
    return list(sums.values())


def _by_model(runs: list[tuple[Run, str]]) -> list[dict[str, Any]]:
    sums: dict[str, dict[str, Any]] = defaultdict(lambda: {"runs": 0, "days": {}, **_nothing()})
    for run, _ in runs:
        row = sums[run.model]
        row["runs"] += 1
        _spend(row, run)
        _spend(row["days"].setdefault(run.started[:10], _nothing()), run)
    rows = [{"model": name, **row} for name, row in sums.items()]
    return sorted(rows, key=lambda row: (-row["cost_usd"], -row["input_tokens"]))


def _nothing() -> dict[str, Any]:
    return {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}


def _spend(row: dict[str, Any], run: Run) -> None:
    row["input_tokens"] += run.input_tokens
    row["output_tokens"] += run.output_tokens
    row["cost_usd"] += run.cost_usd or 0.0


ROUTES = (
    ConsoleRoute("GET", "runs/*/figures", show_run_figures),
    ConsoleRoute("GET", "usage", show_usage),
)
