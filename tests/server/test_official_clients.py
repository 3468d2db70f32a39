"""The official clients talk to the router: Python, TypeScript, and the Inspector."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import EVERCONTEXT
from tests.server.registries import from_npm
from tests.server.router.test_http import add, routing, token

SDK, INSPECTOR = "@modelcontextprotocol/sdk", "@modelcontextprotocol/inspector"
SCRIPT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [kind, target, secret] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${secret}` };
const transport = kind === "http"
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
  : new StdioClientTransport({ command: target, args: ["mcp", "--router"], env: process.env });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const query = ["say the text"];
const found = await client.callTool({ name: "tool_discovery", arguments: { query } });
const call = { toolKey: "free:echo", arguments: { text: "やあ" } };
const done = await client.callTool({ name: "tool_execute", arguments: call });
console.log(JSON.stringify({
  tools: tools.map((tool) => tool.name),
  first: JSON.parse(found.content[0].text).results[0].toolKey,
  said: done.content[0].text,
}));
await client.close();
"""
TALKED = {"tools": ["tool_discovery", "tool_execute"], "first": "free:echo", "said": "やあ"}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("npm")
    found = from_npm(folder, SDK, INSPECTOR)
    (folder / "client.mjs").write_text(SCRIPT, encoding="utf-8")
    return found


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.contract("T7")
@pytest.mark.timeout(360)
def test_typescript_over_http_and_stdio(tmp_path: Path, modules: Path) -> None:
    add("free")
    script = modules.parent / "client.mjs"
    with routing(tmp_path) as url:
        assert json.loads(run("node", script, "http", url, token("ts"))) == TALKED
    assert json.loads(run("node", script, "stdio", EVERCONTEXT)) == TALKED


@pytest.mark.slow
@pytest.mark.contract("T7")
@pytest.mark.timeout(360)
def test_the_inspector_over_http_and_stdio(tmp_path: Path, modules: Path) -> None:
    add("free")
    inspect = ("node", modules / INSPECTOR / "cli" / "build" / "index.js")
    names = ["tool_discovery", "tool_execute"]
    with routing(tmp_path, EC_ROUTER_OPEN="1") as url:
        listed = json.loads(run(*inspect, url, "--transport", "http", "--method", "tools/list"))
        assert [tool["name"] for tool in listed["tools"]] == names
        call = ("--method", "tools/call", "--tool-name", "tool_discovery")
        found = json.loads(run(*inspect, url, *call, "--tool-arg", "query=say the text"))
        assert json.loads(found["content"][0]["text"])["results"][0]["toolKey"] == "free:echo"
    stdio = (*inspect, EVERCONTEXT, "mcp", "--router", "--method", "tools/list")
    assert [tool["name"] for tool in json.loads(run(*stdio))["tools"]] == names


@pytest.mark.contract("T7")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
async def test_python_in_both_eras(tmp_path: Path, mode: Any) -> None:
    from mcp import Client

    add("free")
    with routing(tmp_path, EC_ROUTER_OPEN="1") as url:
        async with Client(url, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["tool_discovery", "tool_execute"]
            call = {"toolKey": "free:echo", "arguments": {"text": "やあ"}}
            done = await client.call_tool("tool_execute", call)
            assert done.content[0].text == "やあ"  # type: ignore[union-attr]
            assert (await client.list_resources()).resources == []
            assert (await client.list_prompts()).prompts == []


@pytest.mark.contract("T7")
async def test_python_over_stdio(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    add("free")
    server = StdioServerParameters(
        command=EVERCONTEXT, args=["mcp", "--router"], env=dict(os.environ), cwd=tmp_path
    )
    async with Client(server) as client:
        found = await client.call_tool("tool_discovery", {"query": "say the text"})
        results = json.loads(found.content[0].text)["results"]  # type: ignore[union-attr]
        assert results[0]["toolKey"] == "free:echo"
