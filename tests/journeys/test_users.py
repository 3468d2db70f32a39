"""Whose memory is whose, through the doors that other programs use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests import postgres
from tests.cli.command import evercontext
from tests.server.running import Gateway, running

QUESTION: dict[str, Any] = {"query": "Which birds are liked?", "limit": 20}


def add(gateway: Gateway, text: str, *user: str) -> str:
    env = {"EC_HOME": str(gateway.home)}
    added = evercontext("memory", "add", text, "--json", *user, cwd=gateway.root, env=env)
    assert added.code == 0, added.err
    return str(json.loads(added.out)["id"])


def contents(answer: dict[str, Any]) -> set[str]:
    return {one["content"] for one in answer["memories"]}


async def use(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content or {}


async def test_what_is_a_users_own_is_neither_seen_nor_forgotten_through_mcp(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "root", tmp_path / "home") as gateway:
        hers = add(gateway, "Ana likes birds: herons", "--user", "ana")
        his = add(gateway, "Ben likes birds: owls", "--user", "ben")
        add(gateway, "Everybody likes birds: robins")
        async with Client(f"{gateway.url}/mcp", read_timeout_seconds=60) as client:
            found = await use(client, "recall", **QUESTION)
            assert contents(found) == {"Everybody likes birds: robins"}
            for id in (hers, his):
                assert (await client.call_tool("forget", {"id": id})).is_error
        for name, word in (("ana", "herons"), ("ben", "owls")):
            env = {"EC_HOME": str(gateway.home)}
            own = evercontext("memory", "list", "--user", name, cwd=gateway.root, env=env)
            assert word in own.out
            assert len(own.out.splitlines()) == 2


@pytest.mark.case(122)
async def test_a_server_that_runs_queues_and_stores_when_the_database_is_back(
    tmp_path: Path,
) -> None:
    url = {"EC_DATABASE_URL": postgres.new_database()}
    with running(tmp_path / "root", tmp_path / "home", url) as gateway:
        async with Client(f"{gateway.url}/mcp", read_timeout_seconds=60) as client:
            with postgres.away():
                kept = await use(client, "remember", content="Cranes are liked birds")
                assert kept["queued"] is True
                assert (await client.call_tool("recall", QUESTION)).is_error
            last = await use(client, "remember", content="Larks are liked birds")
            assert "queued" not in last
            found = contents(await use(client, "recall", **QUESTION))
        assert found == {"Cranes are liked birds", "Larks are liked birds"}
