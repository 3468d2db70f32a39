"""How much abuse the files take: races, kills, power cuts and failing system calls, in figures.

    python -m benchmarks.hostile                 # the whole run, some minutes; power cuts need root
    python -m benchmarks.hostile --scale 0.01    # a glance

Prints one line per attack and exits 1 if anything was lost, mixed or escaped.
"""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Also when run as a file: the attackers, probes and samples are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile.attackers import (
    cut_power_repeatedly,
    kill_repeatedly,
    race_reads,
    race_writes,
    survey,
    swapping,
)
from tests.hostile.test_races_and_kills import SCENARIOS

from evercontext.files.contained_paths import Root
from evercontext.files.file_tree import Tree
from evercontext.files.journal_recovery import open_journal
from evercontext.files.open_beneath import Openat2, Walk
from evercontext.files.policy import gateway_policy

STRATEGIES = (Openat2, Walk)


@contextmanager
def scratch() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="evercontext-hostile-"))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def say(name: str, figures: str, bad: int, started: float) -> int:
    verdict = "ok" if bad == 0 else f"FAILED ({bad})"
    print(f"{name:<34} {figures:<66} {time.monotonic() - started:6.1f} s  {verdict}", flush=True)
    return bad


def raced(strategy: type[Openat2 | Walk], tries: int, *, writing: bool) -> int:
    started = time.monotonic()
    with scratch() as base:
        for name in ("root", "outside"):
            (base / name).mkdir()
        root = Root.open(base / "root", strategy=strategy)
        journal, _ = open_journal(root, base / "home")
        tree = Tree(root, gateway_policy(), journal)
        with swapping(base / "root", base / "outside"):
            if writing:
                result = race_writes(tree, base / "outside", tries, served=tries // 100)
            else:
                result = race_reads(lambda path: tree.read(path).content, tries)
        tree.close()
    name = f"swap race, {'writes' if writing else 'reads'}, {strategy.__name__.lower()}"
    figures = f"{result.tries} tries, {result.served} served, {result.escaped} escapes"
    return say(name, figures, result.escaped, started)


def raced_naively(tries: int) -> int:
    """The same race against a resolved and compared string: what must not be built."""
    started = time.monotonic()
    with scratch() as base:
        for name in ("root", "outside"):
            (base / name).mkdir()
        root = (base / "root").resolve()

        def read(path: str) -> str:
            if not (root / path).resolve(strict=True).is_relative_to(root):
                raise PermissionError
            return (root / path).read_text()

        with swapping(base / "root", base / "outside"):
            result = race_reads(read, tries)
    figures = f"{result.tries} tries, {result.served} served, {result.escaped} escapes"
    say("swap race, reads, resolved string", figures + " (for comparison)", 0, started)
    return 0


def killed(times: int) -> int:
    started = time.monotonic()
    with scratch() as base:
        (base / "root").mkdir()
        total, wrong = kill_repeatedly(base / "root", base / "home", times)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    figures = f"{times} kills, {total} acknowledged writes, {len(wrong)} lost or mixed"
    return say("SIGKILL at random instants", figures, len(wrong), started)


def cut(times: int) -> int:
    started = time.monotonic()
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        return say("ext4 power cuts", "skipped: needs root and loop devices", 0, started)
    with scratch() as base:
        total, wrong = cut_power_repeatedly(base, times)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    figures = f"{times} cuts, {total} acknowledged writes, {len(wrong)} lost or mixed"
    return say("ext4 power cuts", figures, len(wrong), started)


def failed_calls(code: int | None) -> int:
    started = time.monotonic()
    points, wrong = 0, list[str]()
    for strategy in STRATEGIES:
        for scenario in SCENARIOS.values():
            with scratch() as base:
                surveyed = survey(base, *scenario, code, strategy=strategy)
            points += surveyed.points
            wrong += surveyed.wrong
    print(*wrong, sep="\n", end="\n" if wrong else "")
    name = "killed before" if code is None else f"{errno.errorcode[code]} at"
    figures = f"{points} points in {len(SCENARIOS)} operations, {len(wrong)} mixed or lost"
    return say(f"{name} every system call", figures, len(wrong), started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is the whole run")
    scale: float = parser.parse_args().scale

    def scaled(count: int) -> int:
        return max(1, round(count * scale))

    attacks: list[Callable[[], int]] = [
        *(lambda s=s: raced(s, scaled(100_000), writing=False) for s in STRATEGIES),
        lambda: raced_naively(scaled(50_000)),
        *(lambda s=s: raced(s, scaled(100_000), writing=True) for s in STRATEGIES),
        *(lambda c=c: failed_calls(c) for c in (errno.EIO, errno.ENOSPC, None)),
        lambda: killed(scaled(200)),
        lambda: cut(scaled(40)),
    ]
    return 1 if sum(attack() for attack in attacks) else 0


if __name__ == "__main__":
    sys.exit(main())
