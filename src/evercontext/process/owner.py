"""Which process something belongs to, told so that a later one of the same number is not meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def owner_of(pid: int) -> dict[str, Any]:
    """Return what names one process for good."""
    return {"pid": pid, "born": _born(pid)}


def is_alive(owner: object) -> bool:
    """True if the process that ``owner_of`` named still runs."""
    if not isinstance(owner, dict) or not isinstance(owner.get("pid"), int):
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
