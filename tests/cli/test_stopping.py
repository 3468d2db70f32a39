"""A command ends when it is told to, whatever its project makes it do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.command import EVERCONTEXT

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
HANGS = """
import pathlib, signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path("tests/begun").touch()
time.sleep(1000)
def test_nothing():
    pass
"""


def hanging(root: Path) -> None:
    """A check that hears no signal and never ends."""
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "0"\n')
    # In the root, where unittest looks, too: pytest may not be there.
    (root / "test_a.py").write_text(HANGS)


@pytest.mark.parametrize("number", CODES, ids=lambda number: signal.Signals(number).name)
def test_a_signal_ends_a_check_that_hears_none(tmp_path: Path, number: signal.Signals) -> None:
    """X8: what somebody's files make a command do is not what keeps it."""
    hanging(tmp_path)
    null = subprocess.DEVNULL
    with subprocess.Popen(
        [EVERCONTEXT, "fix"], cwd=tmp_path, stdin=null, stdout=null, stderr=null
    ) as process:
        while not (tmp_path / "tests/begun").exists():
            assert process.poll() is None, "it ended before its check began"
            time.sleep(0.02)
        os.kill(process.pid, number)
        assert process.wait(60) == CODES[number]
