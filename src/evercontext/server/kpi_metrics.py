"""Publish the KPIs of the event log for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from evercontext.domain.event import Event, ModelReply
from evercontext.events import context_statistics, log_reader
from evercontext.events.context_statistics import ContextFigures
from evercontext.events.kpi import KINDS, Kpis, Share, compute, is_telling

FRESH_SECONDS = 15.0
"""Figures of a log grow slowly; a scraper that asks more often gets the last ones."""


@dataclass(slots=True)
class LogMetrics:
    """Folds the log; what was read of a segment is not read again until it grows."""

    directory: Path
    fresh: float = FRESH_SECONDS
    _read: dict[Path, tuple[int, list[Event]]] = field(default_factory=dict)
    _text: str = ""
    _computed: float = 0.0

    def text(self) -> str:
        """Return the figures in the Prometheus text format."""
        if not self._text or time.monotonic() - self._computed > self.fresh:
            events = list(self._events())
            kpis = compute(events, running=log_reader.running_traces(self.directory))
            contexts = context_statistics.compute(events)
            self._text = "\n".join([*_lines(kpis), *_contexts(contexts)]) + "\n"
            self._computed = time.monotonic()
        return self._text

    def _events(self) -> Iterator[Event]:
        places = log_reader.segments(self.directory)
        self._read = {place: self._read[place] for place in places if place in self._read}
        for place in places:
            try:
                yield from self._segment(place)
            except FileNotFoundError:
                continue

    def _segment(self, place: Path) -> list[Event]:
        size = place.stat().st_size
        if place not in self._read or self._read[place][0] != size:
            kinds = (*KINDS, *context_statistics.KINDS)
            events = [_without_words(e) for e in log_reader.read(place, *kinds) if _counts(e)]
            self._read[place] = size, events
        return self._read[place][1]


def _counts(event: Event) -> bool:
    return event.body.type in context_statistics.KINDS or is_telling(event)


def _without_words(event: Event) -> Event:
    """Numbers are kept between two looks at the log, what a model said is not."""
    if isinstance(event.body, ModelReply):
        return replace(event, body=replace(event.body, text="", calls=()))
    return event


def _contexts(figures: ContextFigures) -> Iterator[str]:
    latency, usage = "context_assembly_latency_ms", "memory_layer_usage"
    yield from _metric(latency, figures.latency_p50_ms, '{quantile="0.5"}')
    if figures.latency_p95_ms is not None:
        yield f'evercontext_{latency}{{quantile="0.95"}} {figures.latency_p95_ms:g}'
    yield from _metric("context_token_count", figures.tokens_p50, '{quantile="0.5"}')
    yield from _metric("contexts_assembled", figures.assemblies)
    yield from _metric("contexts_degraded", figures.degraded)
    for n, (layer, count) in enumerate(sorted(figures.layers.items())):
        if n == 0:
            yield f"# TYPE evercontext_{usage} gauge"
        yield f'evercontext_{usage}{{layer="{layer}"}} {count}'
    yield from _metric("token_estimate_error_mean_ratio", figures.error_mean)
    yield from _metric("token_estimate_error_p95_ratio", figures.error_p95)


def _metric(name: str, value: float | None, labels: str = "") -> Iterator[str]:
    if value is not None:
        yield f"# TYPE evercontext_{name} gauge"
        yield f"evercontext_{name}{labels} {value:g}"


def _lines(kpis: Kpis) -> Iterator[str]:
    latency = None if kpis.latency_p95_ms is None else kpis.latency_p95_ms / 1000
    yield from _gauge("tasks", kpis.tasks)
    yield from _gauge("tasks_cut_off", kpis.cut_off)
    yield from _gauge("task_latency_p95_seconds", latency)
    yield from _gauge("policy_refusals", kpis.policy_refusals)
    yield from _gauge("plan_cache_hits", kpis.plan_cache_hits)
    yield from _gauge("mean_recovery_steps", kpis.mean_recovery_steps)
    for name in (
        "task_success",
        "plan_reproduction",
        "partial_failure",
        "evidence_match",
        "rename_accuracy",
        "auto_recovery",
    ):
        share: Share = getattr(kpis, name)
        yield from _gauge(f"{name}_ratio", share.rate)
        yield from _gauge(f"{name}_of", share.of)


def _gauge(name: str, value: float | None) -> Iterator[str]:
    # A figure that nothing was counted for is left out: 0 would say something else.
    if value is not None:
        yield f"# TYPE evercontext_kpi_{name} gauge"
        yield f"evercontext_kpi_{name} {value:g}"
