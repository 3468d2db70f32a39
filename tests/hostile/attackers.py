"""Attackers and accidents, in a length that the caller chooses.

The test suite runs them briefly, ``benchmarks/hostile.py`` for as long as it takes to be sure.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evercontext.errors import EverContextError
from evercontext.files.contained_paths import Root
from evercontext.files.file_tree import Tree
from evercontext.files.journal_recovery import open_journal
from evercontext.files.open_beneath import Beneath
from evercontext.files.policy import gateway_policy
from evercontext.files.system_calls import Kernel
from tests.programs import program

SECRET = "SECRET-CANARY"
TRACE = "33333333-3333-4333-8333-333333333333"


# Swapping a directory for a link while somebody uses it


def _swap_for_ever(place: Path, parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open(place, os.O_RDONLY)
    while os.getppid() == parent:
        for _ in range(1000):
            libc.renameat2(here, b"d", here, b"l", 2)


@contextmanager
def swapping(place: Path, outside: Path) -> Iterator[None]:
    """Flip ``d`` between a directory inside and a link to ``outside``, as fast as possible."""
    (place / "d").mkdir()
    (place / "d" / "f.txt").write_text("inside")
    (place / "l").symlink_to(outside)
    (outside / "f.txt").write_text(SECRET)
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            _swap_for_ever(place, parent)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@dataclass
class Raced:
    """How a race ended."""

    tries: int = 0
    served: int = 0
    refused: int = 0
    escaped: int = 0


def race_reads(read: Callable[[str], str], tries: int) -> Raced:
    """Read through the name that is being swapped."""
    result = Raced()
    for _ in range(tries):
        result.tries += 1
        try:
            content = read("d/f.txt")
        except (EverContextError, OSError):
            result.refused += 1
            continue
        result.served += 1
        result.escaped += SECRET in content
    return result


def race_writes(tree: Tree, outside: Path, tries: int, served: int) -> Raced:
    """Write through the name that is being swapped, until so many tries and successes are had."""
    result = Raced()
    while result.tries < tries or result.served < served:
        n = result.tries
        result.tries += 1
        try:
            tree.write(("d/w.txt", f"d/n{n % 7}.txt")[n % 2], f"{n}", trace_id=TRACE)
            result.served += 1
        except EverContextError:
            result.refused += 1
        if n % 100 == 0:
            result.escaped += os.listdir(outside) != ["f.txt"]
    result.escaped += os.listdir(outside) != ["f.txt"]
    result.escaped += (outside / "f.txt").read_text() != SECRET
    return result


# Being killed, and losing power

_WRITER = """
import os, sys
from pathlib import Path
from evercontext.files.policy import gateway_policy
from evercontext.files.file_tree import Tree
from tests.hostile.attackers import TRACE, payload
tree = Tree.open(sys.argv[1], gateway_policy(), Path(sys.argv[2]))
n = int(sys.argv[3])
while True:
    n += 1
    if n % 4 == 0:
        with tree.journal.step(TRACE) as step:
            for name in ("s1.txt", "d/s2.txt", "d/e/s3.txt"):
                tree.write(name, payload(n), trace_id=TRACE, step=step)
    else:
        tree.write(f"f{n % 3}.txt", payload(n), trace_id=TRACE)
    os.write(1, f"{n}\\n".encode())
"""
STEP = ("s1.txt", "d/s2.txt", "d/e/s3.txt")


def payload(n: int) -> str:
    """A content that says whether it is whole."""
    return f"{n}\n" * (1 + n * 37 % 900) + "end"


def number(content: str) -> int:
    """Return the number of a whole payload; ValueError for a mixed one."""
    n = int(content.split("\n", 1)[0])
    if content != payload(n):
        raise ValueError(f"mixed content of {n}")
    return n


def start_writer(place: Path, home: Path, first: int) -> subprocess.Popen[bytes]:
    """Start a process that writes for ever and says what was acknowledged."""
    command = [sys.executable, "-c", _WRITER, str(place), str(home), str(first)]
    here = Path(__file__).parents[2]
    quiet = subprocess.DEVNULL  # a disk that goes dark makes the writer complain
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, cwd=here)


def run_until(
    end: Callable[[], None], place: Path, home: Path, first: int, chance: random.Random
) -> list[int]:
    """Return what a writer acknowledged until, some answers and an instant later, it ended."""
    writer = start_writer(place, home, first)
    assert writer.stdout
    answers = chance.randint(1, 12)
    acknowledged = [int(writer.stdout.readline()) for _ in range(answers)]
    time.sleep(chance.random() * 0.03)
    end()
    writer.kill()
    acknowledged += [int(line) for line in writer.stdout.read().split(b"\n")[:-1]]
    writer.wait()
    writer.stdout.close()
    return acknowledged


def inspect(place: Path, home: Path, acknowledged: list[int]) -> list[str]:
    """Open the tree as the next process would; return everything that is wrong."""
    Tree.open(place, gateway_policy(), home).close()
    wrong = [f"left {p.name}" for p in place.rglob(".ec-*")]
    expected: dict[str, int] = {}
    for n in acknowledged:
        for name in STEP if n % 4 == 0 else (f"f{n % 3}.txt",):
            expected[name] = n
    for name, n in expected.items():
        try:
            found = number((place / name).read_text())
        except (OSError, ValueError) as error:
            wrong.append(f"{name}: {error}")
            continue
        if found < n:
            wrong.append(f"{name}: {n} was acknowledged, {found} is there")
    there = [(place / name).exists() and (place / name).read_text() for name in STEP]
    if len(set(there)) != 1:
        wrong.append("a step is half done")
    return wrong


def kill_repeatedly(place: Path, home: Path, times: int, seed: int = 1) -> tuple[int, list[str]]:
    """Kill a writer ``times`` times; return the acknowledged writes and what went wrong."""
    chance = random.Random(seed)
    total, wrong, last = 0, [], 0
    for _ in range(times):
        acknowledged = run_until(lambda: None, place, home, last, chance)
        last = acknowledged[-1] + 1
        total += len(acknowledged)
        wrong += inspect(place, home, acknowledged)
    return total, wrong


_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_WITHOUT_FLUSH = struct.pack("I", 2)  # as if the current were cut: the journal is dropped too


def cut_power_repeatedly(base: Path, times: int, seed: int = 1) -> tuple[int, list[str]]:
    """Cut the power of an ext4 under a writer; return the acknowledged writes and what is wrong."""
    image, disk = base / "disk.img", base / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run([program("mkfs.ext4"), "-q", "-F", str(image)], check=True)
    chance = random.Random(seed)
    total, wrong, last = 0, [], 0
    for _ in range(times):
        subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=True)
        (disk / "root").mkdir(exist_ok=True)
        dark = partial(_cut_power, disk)
        acknowledged = run_until(dark, disk / "root", disk / "home", last, chance)
        subprocess.run(["umount", str(disk)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=True)
        wrong += inspect(disk / "root", disk / "home", acknowledged)
        subprocess.run(["umount", str(disk)], check=True)
        last, total = acknowledged[-1] + 1, total + len(acknowledged)
    return total, wrong


def _cut_power(disk: Path) -> None:
    here = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(here, _SHUTDOWN, _WITHOUT_FLUSH)
    os.close(here)


# System calls that fail, or after which nothing comes any more

_CALLS = (
    *("open", "openat2", "fstat", "lstat", "read", "write", "truncate", "chmod", "fsync"),
    *("fdatasync", "mkdir", "rmdir", "unlink", "rename", "rename_new", "exchange"),
)


class FaultyKernel(Kernel):
    """A kernel whose n-th call fails with ``code``, or kills the process if there is none."""

    def __init__(self, fail_at: int, code: int | None) -> None:
        super().__init__()
        self.armed = False
        self.calls = 0
        self._fail_at, self._code = fail_at, code

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in _CALLS and self.armed:
            self._count()
        return found

    def _count(self) -> None:
        self.calls += 1
        if self.calls != self._fail_at:
            return
        if self._code is None:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(self._code, os.strerror(self._code or 0))


@dataclass
class Surveyed:
    """What came of failing every single call of a scenario."""

    points: int = 0
    wrong: list[str] = field(default_factory=list)


Action = Callable[[Tree], object]


def survey(
    base: Path,
    before: dict[str, str],
    action: Action,
    after: dict[str, str],
    code: int | None,
    *,
    strategy: Callable[[Kernel], Beneath] | None = None,
    most: int = 1000,
) -> Surveyed:
    """Fail the first, the second, the third … call of ``action``.

    Every time the files must be all as ``before`` or all as ``after``, and as ``after`` if the
    action said that it was done; the next process must find no litter and be able to write.
    """
    result = Surveyed()
    for n in range(1, most):
        place, home = base / f"{n}" / "root", base / f"{n}" / "home"
        place.mkdir(parents=True)
        for name, content in before.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(content)
        outcome = _in_child(lambda p=place, h=home, n=n: _act(p, h, action, n, code, strategy))  # type: ignore[misc]
        if outcome == _NOT_REACHED:
            return result
        result.points += 1
        result.wrong += [
            f"call {n}: {said}" for said in _judge(place, home, before, after, outcome)
        ]
    return result


_DONE, _NOT_REACHED, _FAILED, _CRASHED = 0, 77, 3, 99


def _act(
    place: Path,
    home: Path,
    action: Action,
    n: int,
    code: int | None,
    strategy: Callable[[Kernel], Beneath] | None,
) -> int:
    kernel = FaultyKernel(n, code)
    root = Root.open(place, kernel=kernel, strategy=strategy)
    journal, _ = open_journal(root, home)
    tree = Tree(root, gateway_policy(), journal)
    kernel.armed = True
    try:
        action(tree)
        outcome = _DONE if kernel.calls >= n else _NOT_REACHED
    except EverContextError:
        outcome = _FAILED
    kernel.armed = False
    tree.close()
    return outcome


def _in_child(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        outcome = _CRASHED
        try:
            outcome = work()
        finally:
            os._exit(outcome)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _judge(
    place: Path, home: Path, before: dict[str, str], after: dict[str, str], outcome: int
) -> Iterator[str]:
    if outcome == _CRASHED:
        yield "raised something that is not ours"
    if outcome == _FAILED and not _any_of(place, (before, after)):
        yield f"mixed after the failure: {_contents(place)}"
    tree = Tree.open(place, gateway_policy(), home)
    if not _any_of(place, (before, after)):
        yield f"mixed after the restart: {_contents(place)}"
    if outcome == _DONE and _contents(place) != after:
        yield f"acknowledged and lost: {_contents(place)}"
    if list(place.rglob(".ec-*")):
        yield "a temporary file was left"
    tree.write("later.txt", "works", trace_id=TRACE)
    tree.close()


def _any_of(place: Path, states: tuple[dict[str, str], ...]) -> bool:
    return _contents(place) in states


def _contents(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): path.read_text()
        for path in place.rglob("*")
        if path.is_file() and not path.name.startswith(".ec-")
    }
