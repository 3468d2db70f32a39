from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evercontext.domain.event import ContextAssembled, ModelReply
from evercontext.events.log import EventLog
from evercontext.server.kpi_metrics import LogMetrics
from evercontext.server.request_metrics import Metrics

RECORDED = Path(__file__).parent.parent / "events" / "recorded.jsonl"


@pytest.mark.contract("E48", "E49", "E50", "E51")
def test_the_figures_of_a_log_stand_beside_those_of_the_server(tmp_path: Path) -> None:
    shutil.copy(RECORDED, tmp_path / "2026-11-15-1-1.jsonl")
    lines = Metrics(LogMetrics(tmp_path).text).text().splitlines()
    assert "evercontext_http_requests_in_progress 0" in lines
    for line in (
        "evercontext_kpi_tasks 6",
        "evercontext_kpi_task_success_ratio 0.666667",
        "evercontext_kpi_task_latency_p95_seconds 0.789",
        "evercontext_kpi_policy_refusals 1",
        "evercontext_kpi_plan_reproduction_ratio 0.5",
        "evercontext_kpi_plan_cache_hits 1",
        "evercontext_kpi_partial_failure_ratio 0.5",
        "evercontext_kpi_evidence_match_ratio 0.5",
        "evercontext_kpi_rename_accuracy_ratio 0.666667",
        "evercontext_kpi_auto_recovery_ratio 0.666667",
        "evercontext_kpi_mean_recovery_steps 2",
    ):
        assert line in lines


def test_a_log_that_grows_is_read_again_and_an_empty_one_claims_nothing(tmp_path: Path) -> None:
    figures = LogMetrics(tmp_path, fresh=0)
    assert "evercontext_kpi_tasks 0" in figures.text()
    assert "success_ratio" not in figures.text()
    whole = RECORDED.read_text().splitlines(keepends=True)
    segment = tmp_path / "2026-11-15-1-1.jsonl"
    segment.write_text("".join(whole[:10]))
    assert "evercontext_kpi_tasks 1\n" in figures.text()
    segment.write_text("".join(whole))
    assert "evercontext_kpi_tasks 6\n" in figures.text()
    segment.unlink()
    assert "evercontext_kpi_tasks 0\n" in figures.text()


@pytest.mark.contract("R9", "R52")
def test_contexts_and_estimates_are_metrics(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    body = ContextAssembled(
        context_assembly_latency_ms=12.5,
        context_token_count=640,
        memory_layer_usage={"semantic": 3, "working": 4},
        token_limit=8000,
        compression_applied=False,
    )
    log.emit(body, trace_id="t")
    reply = ModelReply(model="m", turn=1, text="words", input_tokens=100, estimated_tokens=104)
    log.emit(reply, trace_id="t")
    log.close()
    lines = LogMetrics(tmp_path).text().splitlines()
    for line in (
        'evercontext_context_assembly_latency_ms{quantile="0.95"} 12.5',
        'evercontext_context_token_count{quantile="0.5"} 640',
        'evercontext_memory_layer_usage{layer="semantic"} 3',
        'evercontext_memory_layer_usage{layer="working"} 4',
        "evercontext_token_estimate_error_p95_ratio 0.04",
    ):
        assert line in lines
