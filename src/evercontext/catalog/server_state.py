"""How servers are doing, left where another process can read it: which one runs, fails, waits."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from evercontext.files.atomic_write import replace_file
from evercontext.files.json_file import read_json_leniently


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
    path = folder / f"{state.server}.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(asdict(state)).encode(), durable=False)
    except OSError:
        return


def read_state(folder: Path, server: str) -> ServerState | None:
    """What is known, if the process that wrote it still runs."""
    try:
        state = ServerState(**(read_json_leniently(folder / f"{server}.json") or {}))
        os.kill(state.pid, 0)
    except (OSError, TypeError):
        return None
    return state
