"""How much work `evercontext --help` does, against `python -c "import typer"`, and `mcp`.

CPU time, the least of twenty runs of each, taken in turns; with --instructions, valgrind counts.
Of `evercontext mcp` it is the time until `initialize` is answered.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
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


def handshake_seconds() -> float:
    """Return the CPU time of `evercontext mcp` up to its first answer."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [OURS[0], "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "EC_HOME": f"{folder}/home"},
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        process.stdin.close()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    if Path("/proc/self/stat").exists():
        answered = min(handshake_seconds() for _ in range(RUNS // 4))
        print(f"mcp initialize      {answered:.2f} CPU seconds  (goal: at most 0.25)")


if __name__ == "__main__":
    main()
