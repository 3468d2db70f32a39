"""F4: a project has one name at every entrance, wherever it lies."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evercontext.access.router_projects import Projects, RouterProject
from evercontext.testing import tiny_repository
from mcp import Client
from tests.cli.command import evercontext
from tests.server.routed import Routed, routed
from tests.server.running import running

SSH, HTTPS = "git@git.example:team/shop.git", "https://ana:pw@git.example/team/shop"
QUESTION = "Which birds are liked?"


def repository(place: Path, url: str | None = None) -> Path:
    tiny_repository(place, {"a.py": "x = 1\n"})
    if url:
        remote(place, url)
    return place


def remote(place: Path, url: str) -> None:
    command = ["git", "-C", str(place), "remote", "add", "origin", url]
    subprocess.run(command, check=True, capture_output=True)


def add(place: Path, text: str) -> None:
    ended = evercontext("memory", "add", text, cwd=place)
    assert ended.code == 0, ended.err


def found(place: Path) -> set[str]:
    ended = evercontext("memory", "search", QUESTION, "--json", cwd=place)
    return {one["content"] for one in json.loads(ended.out)["results"]}


async def execute(router: Routed, tool: str, **arguments: Any) -> dict[str, Any]:
    call = {"toolKey": f"evercontext:{tool}", "arguments": arguments}
    answer = await router.ask("tools/call", name="tool_execute", arguments=call)
    return dict(answer["_meta"]["evercontext/data"])


@pytest.mark.slow
async def test_clones_gateway_and_router_share_what_is_remembered(tmp_path: Path) -> None:
    first = repository(tmp_path / "first", SSH)
    second = repository(tmp_path / "elsewhere" / "second", HTTPS)
    other = repository(tmp_path / "other", "git@git.example:team/kitchen.git")
    add(first, "Ana likes birds: herons")
    add(other, "Nobody likes birds: owls")
    assert found(second) == {"Ana likes birds: herons"}
    with running(second, Path(os.environ["EC_HOME"])) as gateway:
        async with Client(f"{gateway.url}/mcp", read_timeout_seconds=60) as client:
            answer = await client.call_tool("recall", {"query": QUESTION})
    assert "herons" in str(answer.content)
    assert "owls" not in str(answer.content)
    repository(tmp_path / "project", SSH)
    async with routed(tmp_path) as router:
        bound = RouterProject("shop", str(tmp_path / "project"))
        await Projects(router.app.store).put(bound)
        router.headers["x-evercontext-project"] = "shop"
        told = await execute(router, "recall", query=QUESTION)
        assert [one["content"] for one in told["memories"]] == ["Ana likes birds: herons"]
        await execute(router, "remember", content="Ben likes birds: robins")
    both = {"Ana likes birds: herons", "Ben likes birds: robins"}
    assert found(first) == found(second) == both


@pytest.mark.slow
async def test_what_was_kept_under_earlier_names_comes_along(tmp_path: Path) -> None:
    """Under the path, before there was a remote; and under the id of the router's project."""
    project, clone = repository(tmp_path / "project"), repository(tmp_path / "clone", HTTPS)
    add(project, "Ana likes birds: herons")
    async with routed(tmp_path) as router:
        await Projects(router.app.store).put(RouterProject("shop", str(project)))
        await router.app.memory.memories.save_memory("Ben likes birds: robins", project="shop")
    assert found(clone) == set()
    remote(project, SSH)
    both = {"Ana likes birds: herons", "Ben likes birds: robins"}
    assert found(project) == both
    assert found(clone) == both
