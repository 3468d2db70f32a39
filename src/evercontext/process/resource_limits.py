"""Define the resource limits of one command."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIB = 1024**3
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings for a command and everything it starts."""

    cpu: int = 600
    """Processor seconds of one process."""
    memory: int = 4 * GIB
    """Bytes of one process, and of all together."""
    processes: int = 512
    file_size: int = GIB
    """Bytes of one file."""
    open_files: int = 4096

    def plan(self) -> dict[str, Any]:
        """Return the limits as the supervisor applies them."""
        return {
            "rlimits": [
                ["RLIMIT_CPU", self.cpu],
                ["RLIMIT_DATA", self.memory],
                ["RLIMIT_FSIZE", self.file_size],
                ["RLIMIT_NOFILE", self.open_files],
                ["RLIMIT_CORE", 0],
            ],
            "memory": self.memory,
            "processes": self.processes,
            "cgroups": self.cgroups(),
        }

    def cgroups(self, base: Path = CGROUPS) -> list[list[Any]]:
        """Return the control groups to make, with what to write into them.

        RLIMIT_NPROC does not bind the superuser; a control group does. Others cannot make one,
        and need none.
        """
        if os.geteuid() != 0:
            return []
        name = f"evercontext-{os.getpid()}-{secrets.token_hex(6)}"
        # a little above: the supervisor should be the one who notices, and says so
        pids, memory = str(self.processes), str(self.memory + self.memory // 4)
        if (base / "cgroup.controllers").exists():
            return [[str(base / name), [["pids.max", pids], ["memory.max", memory]]]]
        return [
            [str(base / "pids" / name), [["pids.max", pids]]],
            [str(base / "memory" / name), [["memory.limit_in_bytes", memory]]],
        ]


UNLIMITED = Limits(1 << 40, memory=1 << 60, processes=1 << 18, file_size=1 << 60, open_files=65536)
"""For servers that run as long as we do, and are only supervised."""
