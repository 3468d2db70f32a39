"""``tool_execute`` through our router, next to a FastMCP aggregator of the same two servers.

    python benchmarks/relay.py [--seconds 4] [--fastmcp PYTHON] [--only http|stdio]

Ours checks the token, the rights and the pins, and writes the audit, at every call; PYTHON is an
interpreter that has fastmcp installed. Both routers stand before the same two servers and are asked
over HTTP by the same client; ``raw relay`` copies bytes to one of them and does nothing else. Calls
per second of the router's own processor time are printed, its children's left out, because on a
busy machine nothing else can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

OURS = [sys.executable, "-c", "from evercontext.cli.main import main; main()"]
HERE = Path(__file__).parent
PEERS = HERE / "relay_peers.py"
STDIO = HERE.parent / "tests" / "catalog" / "odd_server.py"
NAMES = ("one", "two")
THEIRS = """
import json, sys
from fastmcp.server import create_proxy
create_proxy({"mcpServers": json.loads(sys.argv[2])}).run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), stateless_http=True,
    json_response=True, show_banner=False, log_level="error")
"""
ACCEPT = "accept: application/json, text/event-stream\r\ncontent-type: application/json"


async def ask(port: int, body: bytes, headers: str, until: float) -> list[float]:
    """Ask over one connection, again and again; return how long each answer took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{ACCEPT}\r\n{headers}"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    times = []
    while not times or time.monotonic() < until:
        started = time.monotonic()
        writer.write(request)
        await writer.drain()
        answer = await read_answer(reader)
        if b'"hello"' not in answer and b'\\"hello\\"' not in answer:
            raise SystemExit(f"not an answer: {answer[:600]!r}")
        times.append(time.monotonic() - started)
    writer.close()
    return times


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head.lower())
    if found is None:
        raise SystemExit(f"an answer without a length: {head!r}")
    return await reader.readexactly(int(found[1]))


def spent(pid: int) -> float:
    """Processor seconds of one process, its children left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, pid: int, port: int, call: dict, headers: str, options) -> float:
    """Print and return the calls per processor second."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    body = json.dumps(message).encode()

    async def all_of_them(seconds: float) -> list[float]:
        until = time.monotonic() + seconds
        asking = (ask(port, body, headers, until) for _ in range(options.connections))
        return [spent for one in await asyncio.gather(*asking) for spent in one]

    asyncio.run(all_of_them(1))
    before = spent(pid)
    times = sorted(asyncio.run(all_of_them(options.seconds)))
    cpu = max(spent(pid) - before, 0.01)
    p95 = 1000 * times[int(0.95 * (len(times) - 1))]
    print(
        f"{name:26s} {len(times):6d} calls  {len(times) / cpu:7.0f} per CPU second"
        f"  {1000 * cpu / len(times):8.2f} CPU ms each  p95 {p95:.1f} ms",
        flush=True,
    )
    return len(times) / cpu


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[subprocess.Popen]:
    """A server on a port, from when it listens until the end of the block."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as server:
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield server
        finally:
            server.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def backends(kind: str) -> Iterator[dict[str, dict]]:
    """The two servers, as ``mcpServers`` writes them."""
    if kind == "stdio":
        yield {name: {"command": sys.executable, "args": [str(STDIO)]} for name in NAMES}
        return
    with contextlib.ExitStack() as stack:
        ports = {name: free_port() for name in NAMES}
        for port in ports.values():
            stack.enter_context(running([sys.executable, str(PEERS), "echo", str(port)], port))
        yield {name: {"url": f"http://127.0.0.1:{port}/mcp"} for name, port in ports.items()}


def ours(kind: str, servers: dict[str, dict], options) -> float:
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "EC_HOME": f"{folder}/home", "EC_ROUTER_PORT": "0"}
        project = Path(folder, "project")
        project.mkdir()
        (project / "servers.json").write_text(json.dumps({"mcpServers": servers}))

        def run(*arguments: str) -> str:
            done = subprocess.run(
                [*OURS, *arguments],
                env=env,
                cwd=project,
                check=True,
                capture_output=True,
                text=True,
            )
            return done.stdout.strip()

        run("servers", "import", "servers.json", "--yes")
        secret = run("tokens", "create", "bench")
        command = [*OURS, "serve", "--only", "router"]
        with subprocess.Popen(
            command, env=env, cwd=project, stderr=subprocess.PIPE, text=True
        ) as server:
            try:
                found = None
                while found is None:
                    found = re.search(r"router +http://127.0.0.1:(\d+)", server.stderr.readline())
                arguments = {"toolKey": "one:echo", "arguments": {"text": "hello"}}
                call = {"name": "tool_execute", "arguments": arguments}
                headers = f"authorization: Bearer {secret}\r\n"
                name = f"ours, {kind}"
                return measure(name, server.pid, int(found[1]), call, headers, options)
            finally:
                server.terminate()


def theirs(kind: str, servers: dict[str, dict], options) -> float:
    port = free_port()
    command = [options.fastmcp, "-c", THEIRS, str(port), json.dumps(servers)]
    with running(command, port) as server:
        call = {"name": "one_echo", "arguments": {"text": "hello"}}
        return measure(f"fastmcp aggregator, {kind}", server.pid, port, call, "", options)


def raw(servers: dict[str, dict], options) -> float:
    port, target = free_port(), re.search(r":(\d+)/", servers["one"]["url"])[1]
    with running([sys.executable, str(PEERS), "relay", str(port), target], port) as server:
        call = {"name": "echo", "arguments": {"text": "hello"}}
        return measure("raw relay, http", server.pid, port, call, "", options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--fastmcp", metavar="PYTHON")
    parser.add_argument("--only", choices=["http", "stdio"])
    options = parser.parse_args()
    for kind in [options.only] if options.only else ["http", "stdio"]:
        with backends(kind) as servers:
            mine = ours(kind, servers, options)
            if options.fastmcp:
                print(f"  {mine / theirs(kind, servers, options):.0f}x the aggregator", flush=True)
            if kind == "http":
                print(f"  the raw relay is {raw(servers, options) / mine:.1f}x ours", flush=True)


if __name__ == "__main__":
    main()
