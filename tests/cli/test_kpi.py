from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from evercontext import testing
from evercontext.cli.kpi import command, start_of
from evercontext.errors import UsageError
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
