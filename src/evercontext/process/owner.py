"""Which process something belongs to, told so that a later one of the same number is not meant.

A store may be shared by several machines; what belongs to a process of another one is left alone,
because nobody here can tell whether it lives.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import Any


def owner_of(pid: int) -> dict[str, Any]:
    """Return what names one process for good."""
    return {"pid": pid, "born": _born(pid), "machine": _machine()}


def is_here(owner: object) -> bool:
    """True if the process that ``owner_of`` named is one of this machine, and still runs."""
    return isinstance(owner, dict) and owner.get("machine") == _machine() and is_alive(owner)


def is_alive(owner: object) -> bool:
    """True if the process that ``owner_of`` named still runs, as far as this machine can tell."""
    if not isinstance(owner, dict) or not isinstance(owner.get("pid"), int):
        return False
    if owner.get("machine", _machine()) != _machine():
        return True
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
def _machine() -> str:
    """This machine since it was started, or this container: neither's processes are others'."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}".strip()
