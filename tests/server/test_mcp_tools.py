from __future__ import annotations

import json
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from evercontext.server.mcp_tools import MOST_SESSIONS
from mcp import Client, StdioServerParameters
from tests.server.running import COMMAND, Gateway, running

ERAS = ["auto", "legacy"]
TRANSPORTS = ["http", "stdio"]
pytestmark = pytest.mark.contract("E4")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    place = tmp_path_factory.mktemp("mcp")
    with running(place / "root", place / "home") as gateway:
        yield gateway


@asynccontextmanager
async def connected(gateway: Gateway, transport: str, era: str) -> AsyncIterator[Client]:
    server: str | StdioServerParameters = f"{gateway.url}/mcp"
    if transport == "stdio":
        environment = {"EC_APP_ROOT": str(gateway.root), "EC_HOME": str(gateway.home)}
        server = StdioServerParameters(
            command=sys.executable, args=["-c", COMMAND, "mcp"], env=environment
        )
    async with Client(server, mode=era, read_timeout_seconds=60) as client:
        yield client


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_official_client_lists_and_calls(gateway: Gateway, transport: str, era: str) -> None:
    name = f"{transport}-{era}.txt"
    async with connected(gateway, transport, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        wrote = await client.call_tool(
            "write_file", {"path": name, "content": "あ\n", "mode": "create"}
        )
        again = await client.call_tool(
            "write_file", {"path": name, "content": "x", "mode": "create"}
        )
        read = await client.call_tool("read_file", {"path": f"./{name}"})
        listed = await client.call_tool("list_files", {"path": ".", "extensions": [".txt"]})
        escaped = await client.call_tool("read_file", {"path": "../secret.txt"})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("no_such_tool", {})
        wrong = await client.call_tool("read_file", {"pth": 1})

    # P16: an unknown tool was a result, and an empty path was valid by the schema.
    assert unknown.value.error.code == -32602
    assert "no_such_tool" in unknown.value.error.message
    assert tools["read_file"].input_schema["properties"]["path"]["minLength"] == 1
    assert {"list_files", "read_file", "write_file"} <= tools.keys()
    assert not wrote.is_error
    assert wrote.structured_content == {"status": "ok", "path": name}
    assert read.structured_content is None
    assert read.content[0].text == "あ\n"  # type: ignore[union-attr]
    assert name in [entry["name"] for entry in listed.structured_content["files"]]
    assert (gateway.root / name).read_text() == "あ\n"
    for result, code, status in (
        (again, "exists", 409),
        (escaped, "path_escapes_root", 400),
        (wrong, "invalid_arguments", 422),
    ):
        assert result.is_error
        assert result.structured_content["error"]["code"] == code
        assert result.structured_content["status"] == status
        assert code in result.content[0].text  # type: ignore[union-attr]


async def test_hints_come_from_the_effects(gateway: Gateway) -> None:
    async with connected(gateway, "http", "auto") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reading, writing = tools["read_file"].annotations, tools["write_file"].annotations
    assert reading is not None
    assert writing is not None
    assert (reading.read_only_hint, reading.destructive_hint) == (True, False)
    assert (writing.read_only_hint, writing.destructive_hint) == (False, True)
    assert reading.open_world_hint is False
    assert all(tool.input_schema["type"] == "object" for tool in tools.values())
    assert not [name for name in tools if "." in name]
    assert not [name for name in tools if name.startswith("run__")]


@pytest.mark.contract("E12", "E25")
async def test_each_call_has_one_audit_line_under_its_trace(gateway: Gateway) -> None:
    trace_id = str(uuid.uuid4())
    async with (
        httpx2.AsyncClient(headers={"x-trace-id": trace_id}, verify=False, timeout=60) as http,
        Client(
            streamable_http_client(f"{gateway.url}/mcp", http_client=http), read_timeout_seconds=30
        ) as client,
    ):
        await client.call_tool(
            "write_file", {"path": "traced.txt", "content": "four", "mode": "overwrite"}
        )
        await client.call_tool("read_file", {"path": "../traced.txt"})
    lines = [line for line in gateway.audit() if line["trace_id"] == trace_id]
    calls = [line for line in lines if line["door"] == "mcp"]
    assert [(line["method"], line["path"], line["size"], line["status"]) for line in calls] == [
        ("write_file", "traced.txt", 4, 200),
        ("read_file", "../traced.txt", 0, 400),
    ]


@pytest.mark.case(55, 56)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_foreign_pages_do_not_reach_mcp(gateway: Gateway, headers: dict[str, str]) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = gateway.client.post("/mcp", json=call, headers=headers)
    assert answer.status_code == 403


@pytest.mark.case(41, 43)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_call_is_refused_and_the_server_lives(gateway: Gateway, body: bytes) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = gateway.client.post("/mcp", content=body, headers=headers)
    assert 400 <= answer.status_code < 500
    assert gateway.get("/healthz").status_code == 200


@pytest.mark.case(34)
def test_body_over_the_limit_is_refused(gateway: Gateway) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = gateway.client.post("/mcp", content=b'{"a":"' + b"x" * 4_000_000, headers=headers)
    assert answer.status_code == 413


@pytest.mark.case(53)
@pytest.mark.slow
async def test_token_guards_mcp_too(tmp_path: Path) -> None:
    with running(tmp_path / "root", tmp_path / "home", {"EC_TOKEN": "the-right-token"}) as gateway:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert gateway.client.post("/mcp", json=call).status_code == 401
        headers = {"authorization": "Bearer the-right-token"}
        async with (
            httpx2.AsyncClient(headers=headers, verify=False, timeout=60) as http,
            Client(
                streamable_http_client(f"{gateway.url}/mcp", http_client=http),
                read_timeout_seconds=30,
            ) as client,
        ):
            assert (await client.list_tools()).tools


@pytest.mark.slow
def test_stdout_of_stdio_carries_the_protocol_alone(gateway: Gateway, tmp_path: Path) -> None:
    import subprocess

    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "mcp"],
        input=json.dumps(hello) + "\nnot json\n",
        capture_output=True,
        text=True,
        env={"EC_APP_ROOT": str(gateway.root), "EC_HOME": str(tmp_path), "HOME": str(tmp_path)},
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["result"]["serverInfo"]["name"] == "evercontext"
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    assert done.returncode == 0


def test_many_sessions_lock_nobody_out(gateway: Gateway) -> None:
    """X16: 256 clients without a token kept every other one away."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    accept = {"Accept": "application/json, text/event-stream"}
    sessions = []
    for _ in range(MOST_SESSIONS + 20):
        answer = gateway.post("mcp", hello, **accept)
        assert answer.status_code == 200
        sessions.append(answer.headers["mcp-session-id"])
        # The first client works on, so it is not the one that was idle longest.
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert gateway.post("mcp", ping, mcp_session_id=sessions[0], **accept).status_code == 200
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    assert gateway.post("mcp", ping, mcp_session_id=sessions[1], **accept).status_code == 404
    assert gateway.post("mcp", ping, mcp_session_id=sessions[-1], **accept).status_code == 200
