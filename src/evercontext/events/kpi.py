"""Compute KPIs as pure functions over the event log."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from evercontext.domain.check_verdicts import GREEN
from evercontext.domain.event import (
    Audit,
    Body,
    Event,
    Evidence,
    Final,
    Plan,
    Renamed,
    RepairAttempt,
    Spent,
    StepResult,
    Task,
)

EVIDENCE_AT = 5
POLICY_CODES = frozenset(
    {
        "policy",
        "path_escapes_root",
        "path_refused",
        "extension_not_allowed",
        "protected_path",
        "read_only",
        "too_large",
        "not_utf8",
    }
)
KINDS = tuple(
    kind.type
    for kind in (Task, Final, Plan, Evidence, RepairAttempt, StepResult, Audit, Renamed, Spent)
)
"""The events that figures are made of; all others need not even be read."""
NOT_PLANNED = frozenset({"implicit", "cache", "file", "edited", "resume"})
"""Sources of plans that no planner made just then."""
_REFUSED_STATUS = frozenset({400, 403, 413, 415})


@dataclass(slots=True)
class _Trace:
    """What one trace said."""

    task: Task | None = None
    final: Final | None = None
    plans: list[Plan] = field(default_factory=list)
    shown: list[Evidence] = field(default_factory=list)
    repairs: list[RepairAttempt] = field(default_factory=list)
    refusals: int = 0

    @property
    def only_planned(self) -> bool:
        """True for a task that was never meant to be done."""
        return self.task is not None and (self.task.mode, self.task.door) == ("plan", "run")


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many; ``None`` where nothing was counted."""

    of: int
    hits: int

    @property
    def rate(self) -> float | None:
        """The share, or ``None`` if there was nothing to have a share of."""
        return self.hits / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Kpis:
    """The contract's figures (E48-E51)."""

    tasks: int
    """Those that ended, and those that were cut off."""
    cut_off: int
    """Tasks whose process was killed before it could say how they ended."""
    task_success: Share
    latency_p95_ms: int | None
    policy_refusals: int
    plan_reproduction: Share
    plan_cache_hits: int
    partial_failure: Share
    evidence_match: Share
    rename_accuracy: Share
    auto_recovery: Share
    mean_recovery_steps: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, each share with its rate."""
        fields = asdict(self)
        for name in fields:
            value = getattr(self, name)
            if isinstance(value, Share):
                fields[name] = {"hits": value.hits, "of": value.of, "rate": value.rate}
        return fields


def compute(
    events: Iterable[Event], at: int = EVIDENCE_AT, running: Container[str] | None = None
) -> Kpis:
    """Fold a log, in any order, into its figures; ``at`` is the k of evidence match@k.

    A task without an end counts as cut off unless it is among the ``running``; where those are not
    known, it is left out.
    """
    traces, renames = _gather(events)
    cut_off = [] if running is None else [*_cut_off(traces, running)]
    complete = [trace for trace in traces.values() if trace.task and trace.final]
    ended = [trace for trace in complete if not trace.only_planned]
    finals = [trace.final for trace in ended if trace.final]
    planned = [final for final in finals if final.tasks > 1]
    repaired = [trace for trace in traces.values() if trace.repairs]
    recovered = [trace for trace in repaired if _recovered(trace)]
    steps = [len(trace.repairs) for trace in recovered]
    shown = [trace for trace in ended if trace.shown and trace.final and trace.final.changed]
    reproduced, cached = _plans(complete)
    return Kpis(
        tasks=len(ended) + len(cut_off),
        cut_off=len(cut_off),
        task_success=Share(
            len(finals) + len(cut_off), sum(final.exit_code == 0 for final in finals)
        ),
        latency_p95_ms=_p95([final.duration_ms for final in finals]),
        policy_refusals=sum(trace.refusals for trace in traces.values()),
        plan_reproduction=reproduced,
        plan_cache_hits=cached,
        partial_failure=Share(len(planned), sum(_partial(final) for final in planned)),
        evidence_match=Share(len(shown), sum(_matched(trace, at) for trace in shown)),
        rename_accuracy=Share(len(renames), sum(r.found_only_under_new_path for r in renames)),
        auto_recovery=Share(len(repaired), len(recovered)),
        mean_recovery_steps=sum(steps) / len(steps) if steps else None,
    )


def _cut_off(traces: Mapping[str, _Trace], running: Container[str]) -> Iterator[_Trace]:
    for trace_id, trace in traces.items():
        begun = trace.task is not None and trace.final is None
        if begun and not trace.only_planned and trace_id not in running:
            yield trace


def _gather(events: Iterable[Event]) -> tuple[dict[str, _Trace], list[Renamed]]:
    traces: dict[str, _Trace] = defaultdict(_Trace)
    renames: list[Renamed] = []
    for event in sorted(events, key=lambda event: event.id):
        if isinstance(event.body, Renamed):
            renames.append(event.body)
        else:
            _take(traces[event.trace_id], event.body)
    return traces, renames


def _take(trace: _Trace, body: Body) -> None:
    match body:
        case Task():
            # A task that is taken up again has not ended.
            trace.task, trace.final = body, None
        case Final():
            trace.final = body
        case Plan():
            trace.plans.append(body)
        case Evidence():
            trace.shown.append(body)
        case RepairAttempt():
            trace.repairs.append(body)
        case StepResult(error=code) if code in POLICY_CODES:
            trace.refusals += 1
        case Audit(status=status, door="rest") if status in _REFUSED_STATUS:
            # A request refused before any tool was reached leaves only its audit line.
            trace.refusals += not trace.refusals


def _plans(ended: Sequence[_Trace]) -> tuple[Share, int]:
    """Of the plans made anew for a task and tree planned before, how many came out the same."""
    first: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    again = same = cached = 0
    for trace in ended:
        for plan in trace.plans[:1]:
            cached += plan.source == "cache"
            if plan.source in NOT_PLANNED or trace.task is None:
                continue
            key = (trace.task.text, trace.task.root, plan.tree)
            if key in first:
                again += 1
                same += first[key] == plan.tasks
            first.setdefault(key, plan.tasks)
    return Share(again, same), cached


def is_telling(event: Event) -> bool:
    """True if the figures would be others without this event."""
    match event.body:
        case StepResult(error=code):
            return code in POLICY_CODES
        case Audit(status=status, door=door):
            return door == "rest" and status in _REFUSED_STATUS
        case _:
            return event.body.type in KINDS


def _recovered(trace: _Trace) -> bool:
    """Whether repairs ended well: the verdict says it where there is one."""
    if trace.final and trace.final.verified:
        return trace.final.verified in GREEN
    return trace.repairs[-1].green


def _partial(final: Final) -> bool:
    return 0 < final.tasks_done < final.tasks


def _matched(trace: _Trace, at: int) -> bool:
    changed = set(trace.final.changed) if trace.final else set()
    return any(changed & set(evidence.paths[:at]) for evidence in trace.shown)


def _p95(values: Sequence[int]) -> int | None:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1] if values else None
