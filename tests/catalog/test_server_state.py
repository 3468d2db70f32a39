"""How a server is doing, as the processes that use it say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from evercontext.catalog.server_state import ServerState, leave_state, read_state


def state(pid: int, word: str, server: str = "one") -> ServerState:
    return ServerState(server, word, None, None, 3, "2025-11-25", pid)


def test_a_process_that_runs_the_server_is_believed(tmp_path: Path) -> None:
    """C6: a command that ended said stopped for a server that another process ran."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        leave_state(tmp_path, state(other.pid, "running"))
        leave_state(tmp_path, state(os.getpid(), "stopped"))
        leave_state(tmp_path, state(os.getpid(), "running", "one.more"))
        known = read_state(tmp_path, "one")
        assert known is not None
        assert (known.state, known.pid) == ("running", other.pid)
        assert other.stdin
        other.stdin.close()
        other.wait()
    known = read_state(tmp_path, "one")
    assert known is not None
    assert (known.state, known.pid) == ("stopped", os.getpid())
    assert not list(tmp_path.glob(f"one.{other.pid}.json"))


def test_what_is_no_state_is_none(tmp_path: Path) -> None:
    (tmp_path / "one.1.json").write_text('{"server": "one"}')
    (tmp_path / "one.2.json").write_text("[")
    assert read_state(tmp_path, "one") is None
    assert read_state(tmp_path / "nowhere", "one") is None
