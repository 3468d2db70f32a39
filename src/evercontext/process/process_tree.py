"""Count and end the tree of processes below a supervisor."""

# pathlib would cost a third of the supervisor's start
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs as much as the interpreter
    from collections.abc import Iterable
    from typing import Any


def descendants(limit: int = 1 << 30) -> list[int]:
    """Return the living tree below us, orphans included: they are handed to us."""
    numbers: list[int] = []
    open_ends = [os.getpid()]
    while open_ends and len(numbers) <= limit:
        pid = open_ends.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as file:
                    children = [int(child) for child in file.read().split()]
                numbers += children
                open_ends += children
    return numbers


def memory_of(pids: list[int], ceiling: int) -> int:
    """Return the bytes that the processes hold together; shared ones are counted once."""
    total = sum(number(f"/proc/{pid}/statm", 1) * resource.getpagesize() for pid in pids)
    if total <= ceiling:
        return total
    return sum(proportional(pid) for pid in pids)


def number(path: str, field: int) -> int:
    """Return one number of a /proc file, 0 if the process is gone."""
    try:
        with open(path) as file:
            return int(file.read().split()[field])
    except (OSError, IndexError, ValueError):
        return 0


def proportional(pid: int) -> int:
    """Return the process's fair share of the memory it shares."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return number(f"/proc/{pid}/statm", 1) * resource.getpagesize()


def excess(processes: int, memory: int) -> str | None:
    """Name the ceiling that the tree has reached, if it has."""
    pids = descendants(processes)
    if len(pids) >= processes:
        return "processes"
    if memory_of(pids, memory) > memory:
        return "memory"
    return None


def killed_for_memory(cgroups: Iterable[tuple[str, Any] | list[Any]]) -> bool:
    """Tell whether the kernel ended a process of these control groups for its memory.

    Their ceiling is above ours, but on a busy machine a process can grow past both between two of
    our looks.
    """
    for group, _ in cgroups:
        for events in ("memory.events", "memory.oom_control"):  # version 2, version 1
            with contextlib.suppress(OSError), open(f"{group}/{events}") as file:
                counts = dict(line.split() for line in file)
                if int(counts.get("oom_kill", 0)) > 0:
                    return True
    return False


def end_all() -> None:
    """Kill the tree: first stop it, so that nothing forks away meanwhile."""
    stopped: set[int] = set()
    while new := set(descendants()) - stopped:
        send(new, signal.SIGSTOP)
        stopped |= new
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline:
        send(set(descendants()), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def send(pids: set[int], what: signal.Signals) -> None:
    """Signal those that still live."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, what)
