"""The tool router in this process, over a real socket, before real servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from evercontext.access.access_tokens import Tokens
from evercontext.app import EverContext
from evercontext.catalog.server_lifecycle import Patience
from evercontext.catalog.server_table import ServerConfig
from evercontext.server.listener import serve
from evercontext.server.router.http import open_router
from evercontext.settings import load

REAL_SERVER = Path(__file__).parents[1] / "catalog" / "real_server.py"
REAL = ServerConfig("real", (sys.executable, str(REAL_SERVER), "stdio"))
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Routed:
    """A running router."""

    app: EverContext
    url: str
    token: str
    client: httpx2.AsyncClient
    headers: dict[str, str] = field(default_factory=dict)

    async def post(
        self, method: str, params: Mapping[str, Any], *, id: Any = 7, **headers: str
    ) -> httpx2.Response:
        """Ask as a client with the token does."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        if id is not None:
            message["id"] = id
        given = {"authorization": f"Bearer {self.token}", **self.headers, **named}
        return await self.client.post(self.url, json=message, headers=given)

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one question of the handshake era."""
        answer = await self.post(method, params)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["result"])

    async def stateless(self, method: str, **params: Any) -> httpx2.Response:
        """Ask as the stateless revision does."""
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
        named = params.get("name", params.get("uri"))
        if named:
            headers["mcp-name"] = named
        return await self.post(method, {**params, "_meta": STATELESS}, **headers)

    def audit(self) -> list[dict[str, Any]]:
        """The audit lines so far."""
        lines = []
        for segment in sorted(self.app.settings.traces.glob("*.jsonl")):
            events = map(json.loads, segment.read_text().splitlines())
            lines += [event["data"] for event in events if event["type"] == "audit"]
        return lines


_PATIENCE = Patience(handshake=120.0, listing=120.0)
"""Servers of the tests are slow on a busy machine, and none of them is to be given up."""


@asynccontextmanager
async def routed(folder: Path, *servers: ServerConfig, **flags: Any) -> AsyncIterator[Routed]:
    """Open a house with these servers, and its router on a free port."""
    (folder / "project").mkdir(exist_ok=True)
    settings = load({"root": folder / "project", "router_port": 0, "host": "127.0.0.1", **flags})
    async with EverContext.open(settings) as app:
        opened = app.catalog.servers
        opened.around = replace(opened.around, patience=_PATIENCE)
        for config in servers:
            await app.catalog.servers.table.put(config)
        token = await Tokens(app.store).create("test")
        async with open_router(app) as listener, httpx2.AsyncClient(timeout=60) as client:
            ready = asyncio.Event()
            serving = asyncio.create_task(serve([listener], ready.set))
            await ready.wait()
            try:
                yield Routed(app, f"{listener.url}/mcp", token, client)
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
