"""Give tests the installed programs, and print the matrix at the end of a run."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.real.install import Installed, NotInstalled, locate
from tests.real.matrix import Matrix, Outcome, Verdict
from tests.real.registry import CACHE

_PLACE = "real"
_VERDICTS: dict[str, Verdict] = {"passed": "ok", "failed": "failed", "error": "failed"}


@pytest.fixture
def installed(request: pytest.FixtureRequest) -> Installed:
    """The program that the test is parametrized with."""
    name, version = request.param
    try:
        return locate(name, version)
    except NotInstalled as reason:
        pytest.skip(str(reason))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of real programs out unless ``-m real`` asks for them."""
    if "real" in (config.option.markexpr or ""):
        return
    programs = [item for item in items if item.get_closest_marker("real")]
    if programs:
        config.hook.pytest_deselected(items=programs)
        items[:] = [item for item in items if item not in programs]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Write the place in the matrix into the report, which also crosses processes."""
    report = yield
    mark = item.get_closest_marker("real")
    parameters = getattr(item, "callspec", None)
    if mark and parameters:
        program, version = parameters.params["installed"]
        report.user_properties.append((_PLACE, [program, version, mark.args[0], item.name]))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the matrix, and write it as JSON beside the programs."""
    outcomes: dict[tuple[str, ...], Outcome] = {}
    for kind in ("skipped", "passed", "failed", "error"):
        for report in terminalreporter.stats.get(kind, ()):
            for name, place in getattr(report, "user_properties", ()):
                if name == _PLACE:
                    verdict = _VERDICTS.get(kind, "skipped")
                    program, version, entrance, test = place
                    reason = _reason(report, verdict)
                    outcomes[tuple(place)] = Outcome(
                        program, version, entrance, test, verdict, reason
                    )
    if not outcomes:
        return
    matrix = Matrix(outcomes[place] for place in sorted(outcomes))
    terminalreporter.section("real programs")
    for line in matrix.lines():
        terminalreporter.write_line(line)
    path = Path(os.environ.get("EVERCONTEXT_REAL_MATRIX") or CACHE / "matrix.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(matrix.json() + "\n", encoding="utf-8")
    terminalreporter.write_line(f"The same as JSON: {path}")


def _reason(report: Any, verdict: Verdict) -> str:
    if verdict == "ok":
        return ""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join(str(crash.message if crash else report.longrepr).split())[:300]
