"""Compute statistics of contexts and token estimates from the event log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evercontext.domain.event import ContextAssembled, Event, ModelReply

KINDS = (ContextAssembled.type, ModelReply.type)


@dataclass(frozen=True, slots=True)
class ContextFigures:
    """The metrics of R9, and how far token estimates were off (R52)."""

    assemblies: int
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    tokens_p50: float | None
    layers: Mapping[str, int]
    """Messages, memories and summaries that were sent, by layer."""
    degraded: int
    estimates: int
    error_mean: float | None
    """Estimate against real tokens, relatively, whatever its sign."""
    error_p95: float | None


def compute(events: Iterable[Event]) -> ContextFigures:
    """Fold the events into figures."""
    bodies = [event.body for event in events]
    contexts = [body for body in bodies if isinstance(body, ContextAssembled)]
    latencies = [body.context_assembly_latency_ms for body in contexts]
    layers: dict[str, int] = {}
    for body in contexts:
        for name, count in body.memory_layer_usage.items():
            layers[name] = layers.get(name, 0) + count
    off = list(_errors(body for body in bodies if isinstance(body, ModelReply)))
    return ContextFigures(
        assemblies=len(contexts),
        latency_p50_ms=_at(latencies, 0.5),
        latency_p95_ms=_at(latencies, 0.95),
        tokens_p50=_at([body.context_token_count for body in contexts], 0.5),
        layers=layers,
        degraded=sum(bool(body.degraded) for body in contexts),
        estimates=len(off),
        error_mean=sum(off) / len(off) if off else None,
        error_p95=_at(off, 0.95),
    )


def _errors(replies: Iterable[ModelReply]) -> Iterator[float]:
    for reply in replies:
        if reply.estimated_tokens and reply.input_tokens:
            yield abs(reply.estimated_tokens - reply.input_tokens) / reply.input_tokens


def _at(values: Sequence[float], share: float) -> float | None:
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None
