"""Servers that other people made, from PyPI: found, called, and gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.catalog.server_table import ServerConfig
from tests.catalog.world import EVERYBODY, caller, odd, servers, toolbox
from tests.conftest import running_children
from tests.server.registries import from_pypi

PACKAGES = ("mcp-server-time", "mcp-server-git", "tzlocal", "gitpython", "gitdb", "smmap")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return from_pypi(tmp_path_factory.mktemp("pypi") / "packages", *PACKAGES)


def outside(packages: Path, id: str, *arguments: str) -> ServerConfig:
    argv = (sys.executable, "-m", f"mcp_server_{id}", *arguments)
    return ServerConfig(id, argv, env={"PYTHONPATH": str(packages)})


@pytest.mark.slow
@pytest.mark.contract("T37")
@pytest.mark.timeout(300)
async def test_twelve_servers_two_of_others_and_two_dead(tmp_path: Path, packages: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    real = [outside(packages, "time"), outside(packages, "git", "-r", str(repository))]
    own = [odd(f"own{i}") for i in range(8)]
    dead = [odd("mute", "silent"), ServerConfig("gone", ("no-such-program",))]
    before = running_children()
    async with servers(tmp_path, *real, *own, *dead) as opened, toolbox(tmp_path, opened) as box:
        for config in (*real, *own):
            # One after the other: together they would take longer to start than they may.
            backend = await opened.backend(config.id, EVERYBODY)
            assert backend
            assert await backend.entries()
        asked = {"query": "get the current time", "maxResults": 100}
        found = await box.call("tool_discovery", asked, caller())
        keys = [one["toolKey"] for one in found.data["results"]]
        assert keys[0] == "time:get_current_time"
        # Nothing else here tells the time; and who is missing is named.
        assert len(keys) <= 10
        assert "gone is missing" in found.data["notice"]
        assert "mute" in found.data["notice"]
        everything = await opened.gather(EVERYBODY)
        assert {entry.server for entry in everything} == {config.id for config in (*real, *own)}
        call = {"toolKey": "time:get_current_time", "arguments": {"timezone": "Asia/Tokyo"}}
        done = await box.call("tool_execute", call, caller())
        assert "Asia/Tokyo" in done.text
        status = {"toolKey": "git:git_status", "arguments": {"repo_path": str(repository)}}
        assert "No commits yet" in (await box.call("tool_execute", status, caller())).text
        assert len(running_children() - before) >= 10
    assert running_children() == before
