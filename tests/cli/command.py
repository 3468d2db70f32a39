"""The installed command, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_HANGS = 280
"""Seconds after which a command hangs: nearly what a test has, because a busy machine is slow."""
EVERCONTEXT = str(Path(sys.executable).with_name("evercontext"))


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def home() -> Path:
    """The folder of user-level files that this test has for itself."""
    return Path(os.environ["EC_HOME"])


def evercontext(
    *arguments: str,
    cwd: Path | None = None,
    stdin: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run the command in the test's own home; without ``stdin`` there is none."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [EVERCONTEXT, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        check=False,
        timeout=_HANGS,
        stdin=subprocess.DEVNULL if given is None else None,
        input=given,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
