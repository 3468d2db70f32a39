"""Whose memory is whose, through the doors that other programs use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from evercontext.access.access_tokens import Tokens
from mcp import Client
from tests import postgres
from tests.cli.command import evercontext
from tests.server.routed import routed
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


@pytest.mark.slow
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


@asynccontextmanager
async def speaking(gateway: Gateway, **headers: str) -> AsyncIterator[Client]:
    """An MCP client that sends these headers."""
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=named, verify=False, timeout=60) as http,
        Client(
            streamable_http_client(f"{gateway.url}/mcp", http_client=http), read_timeout_seconds=60
        ) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.contract("R54")
async def test_whoever_has_the_token_speaks_for_users_and_nobody_else_does(
    tmp_path: Path,
) -> None:
    env = {"EC_TOKEN": "the-right-token", "EC_USER": "ana"}
    bearer = "Bearer the-right-token"
    with running(tmp_path / "root", tmp_path / "home", env) as gateway:
        async with speaking(gateway, authorization=bearer) as owner:
            await use(owner, "remember", content="Ana likes birds: herons")
        named = {"authorization": bearer, "x_evercontext_user": "太郎"}
        async with speaking(gateway, **named) as taro:
            kept = await use(taro, "remember", content="太郎 likes birds: owls")
            assert contents(await use(taro, "recall", **QUESTION)) == {"太郎 likes birds: owls"}
        async with speaking(gateway, authorization=bearer) as owner:
            assert contents(await use(owner, "recall", **QUESTION)) == {"Ana likes birds: herons"}
            assert (await owner.call_tool("forget", {"id": kept["id"]})).is_error
        post, call = gateway.client.post, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for name in (b"\xff", b"", b"x" * 65):
            bad = {b"authorization": bearer.encode(), b"x-evercontext-user": name}
            assert post("/mcp", json=call, headers=bad).status_code == 400
        upgrade = (
            f"GET /mcp HTTP/1.1\r\nHost: {gateway.host}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {'A' * 22}==\r\nSec-WebSocket-Version: 13"
            f"\r\nAuthorization: {bearer}\r\nX-EverContext-User: ben\r\n\r\n"
        )
        # Answered as the plain request that it is without a WebSocket: nothing is opened.
        assert gateway.exchange(upgrade.encode()).startswith(b"HTTP/1.1 406")
        own = {"EC_HOME": str(gateway.home)}
        listed = evercontext("memory", "list", "--user", "太郎", cwd=gateway.root, env=own)
        assert "owls" in listed.out
        # Nobody set a user for this one: it shows what belongs to the project.
        assert evercontext("memory", "list", cwd=gateway.root, env=own).out == ""
    with running(tmp_path / "root", tmp_path / "home") as open_to_all:
        claimed = {"x-evercontext-user": "ana"}
        answer = open_to_all.client.post("/mcp", json=call, headers=claimed)
        assert (answer.status_code, "EC_TOKEN" in answer.text) == (401, True)


@pytest.mark.contract("R54", "T7")
async def test_a_token_of_the_router_may_be_one_persons(tmp_path: Path) -> None:
    async with routed(tmp_path, user="the-owner") as router:
        tokens = Tokens(router.app.store)
        secrets = {name: await tokens.create(f"laptop of {name}", user=name) for name in "ab"}

        async def execute(token: str, tool: str, **arguments: Any) -> dict[str, Any]:
            router.token = token
            call = {"toolKey": f"evercontext:{tool}", "arguments": arguments}
            answer = await router.ask("tools/call", name="tool_execute", arguments=call)
            return dict(answer["_meta"]["evercontext/data"])

        plain = router.token
        await execute(secrets["a"], "remember", content="A likes birds: herons")
        await execute(plain, "remember", content="All like birds: robins")
        seen = {
            token: contents(await execute(token, "recall", **QUESTION))
            for token in (plain, *secrets.values())
        }
    shared = "All like birds: robins"
    assert seen[plain] == seen[secrets["b"]] == {shared}
    assert seen[secrets["a"]] == {shared, "A likes birds: herons"}


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
