"""P10, P11, P12, P14, C4: programs of others, with a model of theirs, call our tools over MCP.

The scripted model calls a tool of ours. What counts is that the tool ran, and that the program
sent its answer back to the model.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Ended, evercontext, home
from tests.real.install import Installed, NotInstalled, locate
from tests.real.marks import real
from tests.real.mcp_clients import CLIENTS, OurServer, take_turn
from tests.real.registry import HTTP, ROUTER, STDIO
from tests.real.vendor_api import VendorApi, call, text
from tests.server.router.test_http import routing, token
from tests.server.running import running

MARKER = "Kraniche ziehen 秋に"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose file only our tools read."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "birds.txt").write_text(f"{MARKER}\n", encoding="utf-8")
    return folder


def read_and_write(installed: Installed) -> VendorApi:
    """A model that reads a file by our tool, then writes one by another."""
    calls = (
        call("read_file", path="birds.txt"),
        call("write_file", path="nests.txt", content="empty\n", mode="create"),
    )
    script = CLIENTS[installed.program.name].script(*calls)
    return VendorApi(*script, text("All done."), only_with_tools=True)


def check_turn(ended: Ended, api: VendorApi, project: Path) -> None:
    """Both tools ran, both answers went to the model, and its last words to the user."""
    assert ended.code == 0, told(ended, api)
    assert (project / "nests.txt").is_file(), told(ended, api)
    assert (project / "nests.txt").read_text() == "empty\n"
    assert MARKER not in api.said[0]
    assert any(MARKER in body for body in api.said), told(ended, api)
    assert not api.script, told(ended, api)
    assert "All done." in ended.out, told(ended, api)


def told(ended: Ended, api: VendorApi) -> str:
    """What happened, for a test that failed."""
    left = f"{len(api.script)} replies left of {len(api.bodies)} requests"
    return f"exit {ended.code}; {left}; offered {sorted(api.offered)}\n{ended.out}\n{ended.err}"


@real(STDIO, *CLIENTS)
def test_our_tools_run_over_stdio(installed: Installed, project: Path) -> None:
    """P11, P12, P14: as ``mcp install`` wrote it down."""
    with read_and_write(installed) as api:
        ended = take_turn(installed, api.url, project, OurServer())
    check_turn(ended, api, project)


@real(HTTP, *CLIENTS)
def test_our_tools_run_over_http(installed: Installed, project: Path) -> None:
    """The gateway, at its address."""
    with read_and_write(installed) as api, running(project, home()) as gateway:
        ended = take_turn(installed, api.url, project, OurServer(url=f"{gateway.url}/mcp"))
    check_turn(ended, api, project)


@pytest.fixture
def everything() -> Installed:
    """The reference server of the protocol, for what a router passes on."""
    try:
        return locate("everything")
    except NotInstalled as reason:
        pytest.skip(f"server everything: {reason}")


def through_the_router(installed: Installed) -> VendorApi:
    """A model that looks for a tool of another server, calls it, and asks for a picture."""
    calls = (
        call("tool_discovery", query="add two numbers"),
        call("tool_execute", toolKey="everything:get-sum", arguments={"a": 19, "b": 23}),
        call("tool_execute", toolKey="everything:get-tiny-image", arguments={}),
    )
    script = CLIENTS[installed.program.name].script(*calls)
    return VendorApi(*script, text("All done."), only_with_tools=True)


def add_everything(everything: Installed) -> None:
    added = evercontext("servers", "add", "everything", "--", everything.command, "stdio")
    assert added.code == 0, added.err


def check_routed(ended: Ended, api: VendorApi) -> None:
    """What was found, the sum and the picture went to the model."""
    assert ended.code == 0, told(ended, api)
    assert not api.script, told(ended, api)
    assert any("everything:get-sum" in body for body in api.said[1:]), told(ended, api)
    assert any("The sum of 19 and 23 is 42" in body for body in api.said), told(ended, api)
    # Codex 0.50 got the picture, and wrote all of the result as JSON into a text for its model.
    assert api.pictures or "Codex v0.50.0" in ended.err, told(ended, api)


@real(ROUTER, *CLIENTS)
def test_tools_of_another_server_run_through_the_router_over_stdio(
    installed: Installed, everything: Installed, project: Path
) -> None:
    """P10, P11, C3, C4."""
    add_everything(everything)
    server = OurServer(("mcp", "--router"))
    with through_the_router(installed) as api:
        ended = take_turn(installed, api.url, project, server)
    check_routed(ended, api)


@real(ROUTER, *CLIENTS)
def test_tools_of_another_server_run_through_the_router_over_http(
    installed: Installed, everything: Installed, project: Path
) -> None:
    """P10, P11, C3, C4: with a token."""
    add_everything(everything)
    with through_the_router(installed) as api, routing(project) as url:
        server = OurServer(url=url, token=token("client"))
        ended = take_turn(installed, api.url, project, server)
    check_routed(ended, api)
