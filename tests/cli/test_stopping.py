"""A command ends when it is told to, whatever its project or its model makes it do."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from evercontext.process.sandbox import Layer, choose
from tests.cli.stops import CODES, TIMED, WORKS, at_work, twin

MOST = 3.0
"""Seconds of a machine of ordinary speed that is not busy; two are promised."""
LIMIT = 6
STOPS = [
    pytest.param(name, number, marks=() if number is signal.SIGTERM else pytest.mark.slow)
    for name in WORKS
    for number in CODES
    # There Ctrl-C stops the turn and not the conversation.
    if (name, number) != ("chat, a model that hangs", signal.SIGINT)
]


def ended_first(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Return the exit code of a process that must end before its twin does."""
    with twin(seconds) as other:
        while (code := process.poll()) is None:
            assert other.poll() is None, "it took longer than it may"
            time.sleep(0.02)
    return code


def needs_sandbox(name: str) -> None:
    if "hears no signal" in name and choose("auto") is Layer.NONE:
        pytest.skip("no sandbox here")


@pytest.mark.parametrize(("name", "number"), STOPS)
def test_a_signal_ends_every_command(tmp_path: Path, name: str, number: signal.Signals) -> None:
    """X8, X9, X10: and soon, on a busy machine as on an idle one."""
    needs_sandbox(name)
    with at_work(name, tmp_path) as process:
        assert process.poll() is None, (tmp_path / "err").read_text()
        os.kill(process.pid, number)
        assert ended_first(process, MOST) == CODES[number]


@pytest.mark.parametrize("name", TIMED)
def test_a_time_limit_ends_a_run(tmp_path: Path, name: str) -> None:
    """X8, X10: what is at work when the time is up does not keep it."""
    needs_sandbox(name)
    with at_work(name, tmp_path, "--timeout", "2") as process:
        assert ended_first(process, MOST + 2) == LIMIT
    assert "time" in (tmp_path / "err").read_text()
