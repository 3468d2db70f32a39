"""Mark a test as one of a real program at one of our entrances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.real.registry import ENTRANCES, PROGRAMS


def real(entrance: str, *programs: str) -> Callable[[Any], Any]:
    """Run a test with each pinned version of some programs: ``"codex"``, ``"gemini=newest"``.

    The test takes the fixture ``installed``. Where a program is not there it is skipped, and the
    matrix says why.
    """
    assert entrance in ENTRANCES, f"{entrance} is no entrance"
    pairs = [pair for program in programs for pair in _versions(program)]
    parameters = [pytest.param(pair, id="-".join(pair)) for pair in pairs]

    def decorate(test: Any) -> Any:
        test = pytest.mark.parametrize("installed", parameters, indirect=True)(test)
        return pytest.mark.real(entrance)(test)

    return decorate


def _versions(program: str) -> list[tuple[str, str]]:
    name, _, version = program.partition("=")
    versions = PROGRAMS[name].versions
    if version == "newest":
        return [(name, versions[-1])]
    return [(name, each) for each in ([version] if version else versions)]
