from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from evercontext import testing
from evercontext.cli.kpi import command, start_of
from evercontext.domain.event import Body, Final, Task
from evercontext.errors import UsageError
from evercontext.events.log import EventLog
from tests.cli.command import home

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.mark.contract("E48")
async def test_figures_of_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EC_HOME", str(tmp_path / "home"))
    async with testing.house(tmp_path) as app:
        for turns in ([{"text": "done"}], [{"error": "model_refused"}]):
            name = testing.write_script(tmp_path / "s.jsonl", turns)
            await app.run_task("x", model_name=name)
    ended = CliRunner().invoke(command, ["--all", "--json"], standalone_mode=False)
    told = json.loads(ended.stdout)
    assert told["task_success"] == {"hits": 1, "of": 2, "rate": 0.5}
    shown = CliRunner().invoke(command, ["--all"], standalone_mode=False).stdout
    assert "task success          50% (1 of 2)" in shown
    later = CliRunner().invoke(
        command, ["--all", "--since", "2099-01-01", "--json"], standalone_mode=False
    )
    assert json.loads(later.stdout)["tasks"] == 0


@pytest.mark.contract("E48")
def test_a_killed_task_counts_as_cut_off_and_a_running_one_not_at_all() -> None:
    """No success, no latency: the process that ran it could not say how it ended."""
    begin = Task(text="x", root="r", model="m", mode="agent", door="run")
    done = Final(status="done", text="", exit_code=0, duration_ms=100)
    logs: list[tuple[int, str, list[Body]]] = [
        (4194305, "killed", [begin]),
        (4194305, "ended", [begin, done]),
        (4194305, "taken up and killed", [begin, done, begin]),
        (os.getpid(), "running", [begin]),
    ]
    for pid, trace, bodies in logs:
        log = EventLog(home() / "traces")
        for body in bodies:
            log.emit(body, trace_id=trace)
        assert log.segment
        log.segment.rename(log.segment.with_name(f"2026-11-01-{pid}-{len(trace)}.jsonl"))
        log.close()
    shown = CliRunner().invoke(command, ["--all"], standalone_mode=False).stdout.splitlines()
    assert shown[:2] == [
        "tasks                 3 (2 cut off)",
        "task success          33% (1 of 3)",
    ]
    json_out = CliRunner().invoke(command, ["--all", "--json"], standalone_mode=False).stdout
    told = json.loads(json_out)
    assert (told["tasks"], told["cut_off"], told["latency_p95_ms"]) == (3, 2, 100)


RECORDED = Path(__file__).parent.parent / "events" / "recorded.jsonl"
"""Six tasks, four plans alone, three renames and three repairs, as the product wrote them."""


@pytest.mark.contract("E48", "E49", "E50", "E51")
def test_a_recorded_log_has_the_figures_that_were_counted_by_hand() -> None:
    traces = home() / "traces"
    traces.mkdir(parents=True)
    shutil.copy(RECORDED, traces / "2026-11-15-1-1.jsonl")
    shown = CliRunner().invoke(command, ["--all"], standalone_mode=False).stdout
    assert shown.splitlines() == [
        "tasks                 6",
        "task success          67% (4 of 6)",
        "latency p95           0.8 s",
        "policy refusals       1",
        "plan reproduction     50% (1 of 2)",
        "plans from cache      1",
        "partial failures      50% (1 of 2)",
        "evidence match@5      50% (1 of 2)",
        "rename accuracy       67% (2 of 3)",
        "auto recovery         67% (2 of 3)",
        "mean recovery steps   2.0",
    ]
    told = json.loads(
        CliRunner().invoke(command, ["--all", "--json"], standalone_mode=False).stdout
    )
    assert told["latency_p95_ms"] == 789
    assert told["evidence_match"] == {"hits": 1, "of": 2, "rate": 0.5}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("7d", "2026-05-03T12:00:00.000000+00:00"),
        ("12h", "2026-05-10T00:00:00.000000+00:00"),
        ("2026-05-01T00:00:00+00:00", "2026-05-01T00:00:00.000000+00:00"),
    ],
)
def test_since_is_read_as_people_write_it(text: str, moment: str) -> None:
    assert start_of(text, NOW) == moment


@pytest.mark.parametrize(
    "text", ["yesteryear", "9" * 12 + "d", "9" * 400 + "h", "-1d", "0000-01-01"]
)
def test_nonsense_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        start_of(text, NOW)
