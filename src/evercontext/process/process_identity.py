"""Identify a process so that a reused PID is not mistaken for it.

A store may be shared by several machines, and nobody can tell here whether a process of another one
lives: whoever asks says what to take it for.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import Any


def owner_of(pid: int) -> dict[str, Any]:
    """Return what names one process for good."""
    return {"pid": pid, "born": _born(pid), "host": socket.gethostname(), "boot": _boot()}


def is_alive(owner: object, *, elsewhere: bool = False) -> bool:
    """True if the process that ``owner_of`` named still runs; of another machine: ``elsewhere``."""
    if not isinstance(owner, dict) or not isinstance(owner.get("pid"), int):
        return False
    if owner.get("host", socket.gethostname()) != socket.gethostname():
        return elsewhere
    if owner.get("boot", _boot()) != _boot():
        return False
    try:
        os.kill(owner["pid"], 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    # A number is given again to another process; the moment it was born is not.
    return bool(_born(owner["pid"]) == owner.get("born"))


def _born(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


@cache
def _boot() -> str | None:
    """The name of the time since the machine was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
