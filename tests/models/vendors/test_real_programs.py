"""The real programs from npm, if ``python -m tests.real.install`` has brought them here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.process.sandbox import available
from tests.real.install import NotInstalled, locate
from tests.real.registry import CACHE_VARIABLE

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "vendor_programs.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(entry.works for entry in available()), reason="no sandbox works here"
    ),
]


@pytest.mark.parametrize("program", ["codex=0.166.0", "gemini=0.61.0"])
def test_injected_replies_have_no_effect(program: str) -> None:
    """P2, P3: a few of the 40; the benchmark plays all of them."""
    kind, _, version = program.partition("=")
    try:
        folder = locate(kind, version).folder
    except NotInstalled as reason:
        pytest.skip(str(reason))
    env = {**os.environ, CACHE_VARIABLE: str(folder.parents[1])}
    arguments = [program, "--only", "4"]
    done = subprocess.run(
        [sys.executable, BENCHMARK, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| {kind} {version} | 4 |" in done.stdout
    assert "effect: " not in done.stdout
