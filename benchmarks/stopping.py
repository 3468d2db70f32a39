"""How long each command takes to end once it is told to, whatever it works on.

    python benchmarks/stopping.py                 every command and input
    python benchmarks/stopping.py evaluate        those whose name has this word

Prints the real seconds from Ctrl-C, SIGTERM or the end of the time limit to the end of the process.
A time limit begins with the task, as the task's own record of events has it.
Exits 1 if one took more than two seconds after a signal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

# Also when run as a file: the commands and their inputs are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cli.stops import CODES, TIMED, WORKS, at_work

MOST = 2.0
LIMIT = 3.0
"""Seconds of --timeout."""


def stopped(name: str, number: signal.Signals) -> tuple[float, int]:
    """Return the seconds from the signal to the end, and the exit code."""
    with tempfile.TemporaryDirectory() as folder, at_work(name, Path(folder)) as process:
        assert process.poll() is None, f"{name}: it ended before it was told to"
        began = time.monotonic()
        os.kill(process.pid, number)
        return _ended(process, began)


def timed_out(name: str) -> tuple[float, int]:
    """Return the seconds that a time limit was overdrawn, and the exit code.

    The limit is one of the task: the time before it, in which Python and the product start, is none
    of it. The task writes down when it begins.
    """
    limit = ("--timeout", str(LIMIT))
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        with at_work(name, folder, *limit) as process:
            _, code = _ended(process, 0.0)
            ended = time.time()
        return ended - _task_began(folder / "home") - LIMIT, code


def _task_began(home: Path) -> float:
    lines = (line for file in (home / "traces").rglob("*.jsonl") for line in file.open("rb"))
    events = (json.loads(line) for line in lines)
    times = (event["at"] for event in events if event["type"] == "task")
    return datetime.fromisoformat(min(times)).timestamp()


def _ended(process: subprocess.Popen[bytes], began: float) -> tuple[float, int]:
    code = process.wait(120)
    return time.monotonic() - began, code


def main() -> int:
    """Print one line per command, input and way to stop it."""
    wanted = [name for name in WORKS if all(word in name for word in sys.argv[1:])]
    worst = 0.0
    for name in wanted:
        for number in CODES:
            if name.startswith("chat") and number is signal.SIGINT:
                continue  # there it stops the turn and not the conversation
            seconds, code = stopped(name, number)
            print(f"{name:40} {number.name:10} {seconds:6.2f} s  exit {code}", flush=True)
            worst = max(worst, seconds)
        if name in TIMED:
            seconds, code = timed_out(name)
            print(f"{name:40} {'--timeout':10} {seconds:6.2f} s  exit {code}", flush=True)
    print(f"the longest after a signal: {worst:.2f} s")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
