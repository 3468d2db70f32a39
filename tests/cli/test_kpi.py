from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from evercontext import testing
from evercontext.cli.kpi import command, start_of
from evercontext.errors import UsageError

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.mark.contract("E48")
async def test_figures_of_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EC_HOME", str(tmp_path / "home"))
    async with testing.house(tmp_path) as app:
        for turns in ([{"text": "done"}], [{"error": "model_refused"}]):
            name = testing.write_script(tmp_path / "s.jsonl", turns)
            await app.run_task("x", model_name=name)
    ended = CliRunner().invoke(command, ["--json"], standalone_mode=False)
    told = json.loads(ended.stdout)
    assert told["task_success"] == {"hits": 1, "of": 2, "rate": 0.5}
    shown = CliRunner().invoke(command, [], standalone_mode=False).stdout
    assert "task success          50% (1 of 2)" in shown
    later = CliRunner().invoke(command, ["--since", "2099-01-01", "--json"], standalone_mode=False)
    assert json.loads(later.stdout)["tasks"] == 0


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


def test_nonsense_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        start_of("yesteryear", NOW)
