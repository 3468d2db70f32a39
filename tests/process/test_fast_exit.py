from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import atexit
from evercontext.process import leaving
atexit.register(print, "taken down", flush=True)
{told}
leaving.leave(7)
"""


def left(told: str) -> tuple[int, str]:
    program = PROGRAM.format(told=told)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_a_process_that_was_told_to_stop_leaves_at_once() -> None:
    """X8: to take Python down costs seconds on a busy machine."""
    assert left("leaving.hurry(7)") == (7, "")
    assert left("") == (7, "taken down\n")
