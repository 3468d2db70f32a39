"""``tool_execute`` through our router, next to a FastMCP aggregator of the same two servers.

    python benchmarks/relay.py [--seconds 5] [--connections 8] [--fastmcp PYTHON]

Ours checks the token, the rights and the pins, and writes the audit, at every call; PYTHON is an
interpreter that has fastmcp installed. Both routers stand before the same two stdio servers and are
asked over HTTP by the same client. Calls per second of the router's own processor time are printed,
because on a busy machine nothing else can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OURS = [sys.executable, "-c", "from evercontext.cli.main import main; main()"]
ECHO = Path(__file__).parent.parent / "tests" / "catalog" / "odd_server.py"
THEIRS = """
import sys
from fastmcp.server import create_proxy
servers = {name: {"command": sys.argv[2], "args": [sys.argv[3]]} for name in ("one", "two")}
create_proxy({"mcpServers": servers}).run(
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
    while time.monotonic() < until:
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


async def measure(
    name: str, pid: int, port: int, call: dict[str, object], headers: str, options
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    body = json.dumps(message).encode()
    await ask(port, body, headers, time.monotonic() + 1)
    before, until = spent(pid), time.monotonic() + options.seconds
    lists = await asyncio.gather(
        *(ask(port, body, headers, until) for _ in range(options.connections))
    )
    cpu = spent(pid) - before
    times = sorted(t for one in lists for t in one)
    p95 = 1000 * times[int(0.95 * (len(times) - 1))]
    print(
        f"{name:24s} {len(times):6d} calls  {len(times) / max(cpu, 0.01):7.0f} per CPU second"
        f"  {len(times) / options.seconds:6.0f}/s  p95 {p95:.1f} ms",
        flush=True,
    )


def ours(options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "EC_HOME": f"{folder}/home", "EC_ROUTER_PORT": "0"}
        project = Path(folder, "project")
        project.mkdir()

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

        for name in ("one", "two"):
            run("servers", "add", name, "--", sys.executable, str(ECHO))
        secret = run("tokens", "create", "bench")
        command = [*OURS, "serve", "--only", "router"]
        with subprocess.Popen(
            command, env=env, cwd=project, stderr=subprocess.PIPE, text=True
        ) as server:
            found = None
            while found is None:
                found = re.search(r"router +http://127.0.0.1:(\d+)", server.stderr.readline())
            arguments = {"toolKey": "one:echo", "arguments": {"text": "hello"}}
            call = {"name": "tool_execute", "arguments": arguments}
            headers = f"authorization: Bearer {secret}\r\n"
            port = int(found[1])
            asyncio.run(measure("ours, stdio", server.pid, port, call, headers, options))
            server.terminate()


def theirs(options) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [options.fastmcp, "-c", THEIRS, str(port), sys.executable, str(ECHO)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        call = {"name": "one_echo", "arguments": {"text": "hello"}}
        try:
            asyncio.run(measure("fastmcp proxy, stdio", server.pid, port, call, "", options))
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--fastmcp", metavar="PYTHON")
    options = parser.parse_args()
    ours(options)
    if options.fastmcp:
        theirs(options)


if __name__ == "__main__":
    main()
