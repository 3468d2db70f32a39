from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.domain.event import ContextAssembled, ModelReply
from evercontext.events import log_reader
from evercontext.events.context_statistics import KINDS, compute
from evercontext.events.log import EventLog


@pytest.mark.contract("R9", "R52")
def test_contexts_and_estimates_become_figures(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    for n in range(20):
        usage = {"working": 2, "semantic": 1}
        body = ContextAssembled(
            context_assembly_latency_ms=float(n + 1),
            context_token_count=100 * n,
            memory_layer_usage=usage,
            token_limit=10_000,
            compression_applied=False,
            degraded={"semantic": "gone"} if n == 0 else {},
        )
        log.emit(body, trace_id="t")
    for estimated in (90, 110, 100, 0):
        reply = ModelReply(model="m", turn=1, text="", input_tokens=100, estimated_tokens=estimated)
        log.emit(reply, trace_id="t")
    log.close()
    figures = compute(e for place in log_reader.segments(tmp_path) for e in log_reader.read(place))
    assert (figures.assemblies, figures.latency_p50_ms, figures.latency_p95_ms) == (20, 10.0, 19.0)
    assert figures.layers == {"working": 40, "semantic": 20}
    assert figures.degraded == 1
    assert (figures.estimates, figures.error_p95) == (3, 0.1)
    assert figures.error_mean == pytest.approx(0.2 / 3)
    assert set(KINDS) == {"context", "model_reply"}


def test_an_empty_log_claims_nothing() -> None:
    figures = compute([])
    assert (figures.assemblies, figures.latency_p95_ms, figures.error_p95) == (0, None, None)
