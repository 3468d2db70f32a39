"""Publish the state of servers for other processes: running, failing or waiting."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from evercontext.files.atomic_write import replace_file
from evercontext.files.json_file import read_json_leniently

_ORDER = ("running", "failed", "stopped")
"""Which of several notes is believed."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the process that uses a server last knew of it."""

    server: str
    state: str
    problem: str | None
    retry_at: float | None
    """When it is tried again, as the system's clock tells the time."""
    tools: int
    protocol: str
    pid: int

    @property
    def retry_in(self) -> float | None:
        """Seconds until it is tried again; ``None`` if it is not waiting."""
        left = (self.retry_at or 0.0) - time.time()
        return left if left > 0 else None


def leave_state(folder: Path, state: ServerState) -> None:
    """Write it; a disk that cannot be written costs the note, never the server."""
    path = folder / f"{state.server}.{state.pid}.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(asdict(state)).encode(), durable=False)
    except OSError:
        return


def read_state(folder: Path, server: str) -> ServerState | None:
    """Return what the processes that use a server know of it: one that runs it is believed first.

    Each process has a note of its own, so that a command that ends does not speak for a server
    that another process goes on using. Notes of processes that ended are removed.
    """
    states = [state for path in folder.glob(f"{server}.*.json") if (state := _read(path, server))]
    return min(states, key=lambda state: _ORDER.index(state.state), default=None)


def _read(path: Path, server: str) -> ServerState | None:
    try:
        state = ServerState(**(read_json_leniently(path) or {}))
        if state.server != server or state.state not in _ORDER:
            return None
        os.kill(state.pid, 0)
    except ProcessLookupError:
        path.unlink(missing_ok=True)
        return None
    except PermissionError:
        return state
    except (OSError, TypeError):
        return None
    return state
