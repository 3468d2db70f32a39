"""``evercontext kpi``: how well it has been going, computed from the event log."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from evercontext.cli.messages import translate_composed
from evercontext.cli.options import all_option, json_option, root_option, settings_of
from evercontext.cli.terminal import Screen, columns_of, pad
from evercontext.errors import UsageError
from evercontext.events import log_reader
from evercontext.events.kpi import EVIDENCE_AT, KINDS, Kpis, Share, compute, is_telling
from evercontext.events.trace_projects import Foreign

_AGO = re.compile(r"(\d+)\s*([dhw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@click.command("kpi")
@click.option("--since", metavar="WHEN", help="7d, 12h, 2w or a date such as 2026-05-01.")
@click.option(
    "--at",
    type=click.IntRange(1),
    default=EVIDENCE_AT,
    show_default=True,
    help="Search results that count as evidence.",
)
@all_option
@json_option
@root_option
def command(since: str | None, at: int, everywhere: bool, as_json: bool, **place: Any) -> None:
    """See how well it has been going in this project.

    Success, latency, refusals, plans, evidence and recovery, computed from the event log.
    """
    settings = settings_of(place["root"], allow_wide_root=place["allow_wide_root"])
    begin = start_of(since, datetime.now(UTC)) if since else ""
    places = log_reader.segments(settings.traces)
    read = (event for segment in places for event in log_reader.read(segment, *KINDS))
    foreign = Foreign(settings.root)
    if not everywhere:
        read = (event for event in read if not foreign.holds(event))
    events = (event for event in read if event.at >= begin and is_telling(event))
    kpis = compute(events, at, log_reader.running_traces(settings.traces))
    if as_json:
        print(json.dumps(kpis.to_json(), indent=2))
        return
    screen = Screen(sys.stdout, no_color=settings.no_color)
    for line in lines(kpis, at):
        screen.line(line)


def start_of(text: str, now: datetime) -> str:
    """The moment a ``--since`` means, as the log writes moments."""
    try:
        # Python's calendar has a first and a last day, and numbers that it cannot count back.
        return _moment(text.strip(), now).astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        raise UsageError(f"--since {text!r} is no time", fix="Use 7d, 12h or 2026-05-01") from None


def _moment(text: str, now: datetime) -> datetime:
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    return datetime.fromisoformat(text)


def lines(kpis: Kpis, at: int) -> list[str]:
    """The figures as a person reads them."""
    latency = "-" if kpis.latency_p95_ms is None else f"{kpis.latency_p95_ms / 1000:.1f} s"
    steps = "-" if kpis.mean_recovery_steps is None else f"{kpis.mean_recovery_steps:.1f}"
    rows = [
        ("tasks", f"{kpis.tasks}{f' ({kpis.cut_off} cut off)' if kpis.cut_off else ''}"),
        ("task success", _share(kpis.task_success)),
        ("latency p95", latency),
        ("policy refusals", str(kpis.policy_refusals)),
        ("plan reproduction", _share(kpis.plan_reproduction)),
        ("plans from cache", str(kpis.plan_cache_hits)),
        ("partial failures", _share(kpis.partial_failure)),
        (f"evidence match@{at}", _share(kpis.evidence_match)),
        ("rename accuracy", _share(kpis.rename_accuracy)),
        ("auto recovery", _share(kpis.auto_recovery)),
        ("mean recovery steps", steps),
    ]
    shown = [(translate_composed(name), value) for name, value in rows]
    width = max(columns_of(name) for name, _ in shown) + 3
    return [f"{pad(name, width)}{value}" for name, value in shown]


def _share(share: Share) -> str:
    return "-" if share.rate is None else f"{share.rate:.0%} ({share.hits} of {share.of})"
