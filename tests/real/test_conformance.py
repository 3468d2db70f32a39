"""P10, P16: the protocol's conformance suite at our own servers.

``benchmarks/conformance.py`` runs all of it with the reference server, alone and behind our router.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import home
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import HTTP, ROUTER
from tests.real.users import environment
from tests.server.router.test_http import routing
from tests.server.running import running

SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")
"""What does not need the tools of the reference server."""
NEWER = ("server-session-lifecycle",)
"""Of this the older suite knows nothing."""


def check(installed: Installed, url: str) -> None:
    """Run the scenarios one by one; every check of each must pass."""
    newer = not installed.version.startswith("0.1.")
    for scenario in (*SCENARIOS, *(NEWER if newer else ())):
        done = subprocess.run(
            [installed.command, "server", "--url", url, "--scenario", scenario],
            env={**os.environ, **environment(installed)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said = done.stdout + done.stderr
        passed = re.search(r"Passed: (\d+)/(\d+)", said)
        assert done.returncode == 0, said[-3000:]
        assert passed, said[-3000:]
        assert passed[1] == passed[2] != "0", said[-3000:]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@real(HTTP, "conformance")
def test_our_gateway_conforms(installed: Installed, project: Path) -> None:
    with running(project, home()) as gateway:
        check(installed, f"{gateway.url}/mcp")


@real(ROUTER, "conformance")
def test_our_router_conforms(installed: Installed, project: Path) -> None:
    with routing(project, EC_ROUTER_OPEN="1") as url:
        check(installed, url)
