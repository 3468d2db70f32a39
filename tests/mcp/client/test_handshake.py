"""Servers of both eras of the protocol, over both transports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.server_table import ServerConfig
from evercontext.errors import ServerProblem
from evercontext.mcp.revisions import STATELESS_REVISION as STATELESS
from tests.catalog.world import EVERYBODY, odd, run, servers
from tests.mcp.client.test_http import http, reply, serving

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


async def test_a_stateless_server_over_stdio(tmp_path: Path) -> None:
    async with servers(tmp_path, odd("new", "stateless")) as opened:
        assert (await run(opened, "new:echo", text="x"))["content"][0]["text"] == "x"
        (backend,) = await opened.visible(EVERYBODY)
        assert backend.handshake is not None
        assert backend.handshake.version == STATELESS


async def test_a_stateless_server_over_http(tmp_path: Path) -> None:
    tool = {
        "name": "echo",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "x-mcp-header": "Text"}},
        },
    }

    def respond(message: dict[str, Any]) -> bytes:
        told: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["params"].get("_meta", {}).get(VERSION_KEY) != STATELESS:
            told["error"] = {"code": -32022, "message": "Unsupported", "data": {}}
            return http(json.dumps(told).encode(), "application/json", "400 Bad Request")
        if message["method"] == "server/discover":
            told["result"] = {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}}
        elif message["method"] == "tools/list":
            told["result"] = {"tools": [tool], "ttlMs": 60_000, "resultType": "complete"}
        elif message["method"] == "subscriptions/listen":
            told["error"] = {"code": -32601, "message": "not here"}
        else:
            told = reply(message)
        return http(json.dumps(told).encode(), "application/json")

    async with (
        serving(respond) as (url, heads),
        servers(tmp_path, ServerConfig("new", url=url)) as opened,
    ):
        await run(opened, "new:echo", text="やあ")
    asked = heads[-1].lower()
    assert b"mcp-protocol-version: 2026-07-28" in asked
    assert b"mcp-method: tools/call" in asked
    assert b"mcp-name: echo" in asked
    assert b"mcp-param-text: =?base64?" in asked


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_what_a_server_speaks_is_spoken(tmp_path: Path, version: str) -> None:
    def respond(message: dict[str, Any]) -> bytes:
        told = reply(message)
        if message["method"] == "initialize":
            told["result"] = {**told["result"], "protocolVersion": version}
        return http(json.dumps(told).encode(), "application/json")

    async with (
        serving(respond) as (url, heads),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        await run(opened, "far:echo", text="x")
        assert f"mcp-protocol-version: {version}".encode() in heads[-1].lower()


async def test_a_server_that_knows_neither_is_told_so(tmp_path: Path) -> None:
    def respond(message: dict[str, Any]) -> bytes:
        told = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "what"}}
        return http(json.dumps(told).encode(), "application/json")

    async with (
        serving(respond) as (url, _),
        servers(tmp_path, ServerConfig("far", url=url)) as opened,
    ):
        with pytest.raises(ServerProblem, match="-32601: what"):
            await opened.find("far:echo", EVERYBODY)
