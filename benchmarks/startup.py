"""How much work `evercontext --help` does, against `python -c "import typer"`.

CPU time, the least of twenty runs of each, taken in turns; with --instructions, valgrind counts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

OURS = [str(Path(sys.executable).with_name("evercontext")), "--help"]
THEIRS = [sys.executable, "-c", "import typer"]
RUNS = 20


def cpu_seconds(command: list[str]) -> float:
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system


def instructions(command: list[str]) -> int:
    # Only the interpreter itself is wanted, so the console script is given to it as a file.
    whole = ["valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null", sys.executable]
    rest = command[1:] if command[0] == sys.executable else command
    said = subprocess.run([*whole, *rest], capture_output=True, text=True, check=True).stderr
    found = re.search(r"I\s+refs:\s+([\d,]+)", said)
    assert found, said
    return int(found[1].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", action="store_true")
    if parser.parse_args().instructions:
        ours, theirs, unit = float(instructions(OURS)), float(instructions(THEIRS)), "instructions"
    else:
        pairs = [(cpu_seconds(OURS), cpu_seconds(THEIRS)) for _ in range(RUNS)]
        ours, theirs, unit = min(a for a, _ in pairs), min(b for _, b in pairs), "CPU seconds"
    print(f"evercontext --help  {ours:,.3f} {unit}")
    print(f"import typer        {theirs:,.3f} {unit}")
    print(f"ratio               {ours / theirs:.2f}  (goal: at most 1.5)")


if __name__ == "__main__":
    main()
