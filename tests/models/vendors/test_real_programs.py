"""The real programs from npm, if ``benchmarks/vendor_programs.py`` has brought them here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.process.sandbox import available

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "vendor_programs.py"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evercontext-vendors"
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
    if not (CACHE / f"{kind}-{version}" / "node_modules" / ".bin" / kind).exists():
        pytest.skip(f"no {program} here; bring it with: python benchmarks/vendor_programs.py")
    arguments = [program, "--only", "4", "--cache", str(CACHE)]
    done = subprocess.run(
        [sys.executable, BENCHMARK, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| {kind} {version} | 4 |" in done.stdout
    assert "effect: " not in done.stdout
