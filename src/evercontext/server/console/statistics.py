"""Show KPIs over time, scores of documents, and the settings with their sources."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evercontext.domain.event import Audit, Event
from evercontext.errors import NotFound
from evercontext.evaluation.score_history import EvaluationRecord
from evercontext.events.kpi import compute
from evercontext.events.log_reader import running_traces
from evercontext.events.trace_projects import Foreign
from evercontext.server.console.kpi_history import REFUSED, KpiHistory
from evercontext.server.console.request import ConsoleRequest, ConsoleRoute
from evercontext.settings import rows

MOST_DAYS = 365


async def show_kpis(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET kpis``: the figures in all, and of each day that had a task."""
    days = max(1, request.number("days", 30, MOST_DAYS))
    here = None if request.query.get("project") == "all" else Path(request.app.memory.path)
    return await asyncio.to_thread(_fold, request.feed.history, days, here)


def _fold(history: KpiHistory, days: int, here: Path | None) -> dict[str, Any]:
    begin = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"
    events, running = history.since(begin), running_traces(history.directory)
    if here is not None:
        foreign = Foreign(here)
        events = [event for event in events if not foreign.holds(event)]
    by_day: dict[str, list[Event]] = defaultdict(list)
    # A task counts on the day it began, even if it ended after midnight.
    begun = {e.trace_id: e.at[:10] for e in events if e.body.type == "task"}
    for event in events:
        by_day[begun.get(event.trace_id, event.at[:10])].append(event)
    return {
        "days": days,
        "total": compute(events, running=running).to_json(),
        "by_day": [
            {"day": day, **compute(by_day[day], running=running).to_json(), **_spent(by_day[day])}
            for day in sorted(by_day)
        ],
    }


def _spent(events: Iterable[Event]) -> dict[str, Any]:
    costs = [event.body for event in events if event.body.type in ("final", "spent")]
    audits = [event.body for event in events if isinstance(event.body, Audit)]
    return {
        "input_tokens": sum(getattr(cost, "input_tokens", 0) for cost in costs),
        "output_tokens": sum(getattr(cost, "output_tokens", 0) for cost in costs),
        "cost_usd": sum(getattr(cost, "cost_usd", None) or 0.0 for cost in costs),
        "refused": sum(audit.status in REFUSED for audit in audits),
    }


async def list_evaluations(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET evaluations``: each document's scores, oldest first, the newest document first.

    Documents outside of any project, judged by other programs, are there too.
    """
    project = request.app.memory.path
    scores = [
        *await request.app.evaluations.recent(project, 500),
        *await request.app.evaluations.recent("", 100),
    ]
    groups: dict[str, list[EvaluationRecord]] = {}
    for record in sorted(scores, key=lambda record: record.id):
        groups[record.name] = [*groups.pop(record.name, []), record]
    documents = [
        {
            "name": _near(name, project),
            "key": name,
            "scores": [record.to_json() for record in records],
        }
        for name, records in reversed(groups.items())
    ]
    return {"documents": documents}


def _near(name: str, project: str) -> str:
    return name.removeprefix(project.rstrip("/") + "/")


async def show_evaluation(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET evaluations/*``: one score, with the text that was judged where it was kept."""
    record = await request.app.evaluations.get(request.parts[0])
    if record is None or record.project not in ("", request.app.memory.path):
        raise NotFound("there is no such evaluation", fix="See `evercontext evaluate --history`")
    text = await asyncio.to_thread(request.app.evaluations.text_of, record)
    return {**record.to_json(), "text": None if text is None else request.app.memory.clean(text)}


async def show_settings(request: ConsoleRequest) -> dict[str, Any]:
    """Answer ``GET settings``: every value and where it came from; secrets are only said to be."""
    settings = request.app.settings
    values = [
        {
            "name": row.name,
            "value": settings.shown(row.name),
            "origin": settings.origins.get(row.name, "default"),
            "environment": row.metadata["env"],
            "help": row.metadata["help"],
            "secret": row.metadata["secret"],
        }
        for row in rows()
    ]
    return {"settings": values, "notices": list(request.app.notices)}


ROUTES = (
    ConsoleRoute("GET", "kpis", show_kpis),
    ConsoleRoute("GET", "evaluations", list_evaluations),
    ConsoleRoute("GET", "evaluations/*", show_evaluation),
    ConsoleRoute("GET", "settings", show_settings),
)
