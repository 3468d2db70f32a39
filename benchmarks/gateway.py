"""Our gateway, every check and the audit on, next to a plain FastAPI app with the same fsync.

    python benchmarks/gateway.py [--seconds 5] [--connections 16 100]

Both run as one process each, with the same HTTP parser and event loop; the client is a process of
its own. One request in five writes 4 KB, the others read 4 KB. Rounds alternate between the two
servers, so that a busy machine hits both; the figures are medians of the rounds. BENCH_DIR chooses
the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES = 64
CONTENT = "".join(f"line {n:3} of it\n" for n in range(256))
OURS = "from evercontext.cli.main import main; main()"
PLAIN = """
import os, sys
from pathlib import Path
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

ROOT = Path(sys.argv[1]).resolve()
app = FastAPI()

class Read(BaseModel):
    path: str

class Write(BaseModel):
    path: str
    content: str
    mode: str = "overwrite"

def inside(path: str) -> Path:
    full = (ROOT / path).resolve()
    if not full.is_relative_to(ROOT):
        raise HTTPException(400, "path escapes root")
    return full

@app.post("/read_file")
def read_file(body: Read):
    return {"content": inside(body.path).read_text(encoding="utf-8")}

@app.post("/write_file")
def write_file(body: Write):
    with inside(body.path).open("w", encoding="utf-8") as file:
        file.write(body.content)
        file.flush()
        os.fsync(file.fileno())
    return {"status": "ok", "path": body.path}

uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", loop=sys.argv[3], http="httptools")
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def requests(port: int) -> list[bytes]:
    """A cycle of raw requests: four reads, one write."""

    def raw(route: str, body: dict[str, str]) -> bytes:
        data = json.dumps(body).encode()
        head = (
            f"POST /{route} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    cycle = []
    for n in range(FILES):
        path = f"f{n}.txt"
        cycle += [raw("read_file", {"path": path})] * 4
        content = CONTENT.replace("line 100 of it", f"line 100 of {n}")
        cycle.append(raw("write_file", {"path": path, "content": content, "mode": "overwrite"}))
    return cycle


class Client(asyncio.Protocol):
    """One connection that asks, waits, asks again."""

    def __init__(self, cycle: list[bytes], start: int, deadline: float) -> None:
        self.cycle, self.at, self.deadline = cycle, start, deadline
        self.latencies: list[float] = []
        self.failures = 0
        self.buffer = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.sent = time.perf_counter()
        self.at = (self.at + 1) % len(self.cycle)
        self.transport.write(self.cycle[self.at])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) < length:
            return
        self.buffer = b""
        now = time.perf_counter()
        self.latencies.append(now - self.sent)
        self.failures += not head.startswith(b"HTTP/1.1 200")
        if now > self.deadline:
            self.transport.close()
            self.done.set_result(None)
        else:
            self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.failures += 1
            self.done.set_result(None)


async def load(port: int, connections: int, seconds: float) -> tuple[float, float, int]:
    """Return requests per second, p95 in ms, failures."""
    cycle, loop = requests(port), asyncio.get_running_loop()
    started = time.perf_counter()
    clients = []
    for n in range(connections):
        _, client = await loop.create_connection(
            lambda n=n: Client(cycle, n * 37, started + seconds), "127.0.0.1", port
        )
        clients.append(client)
    await asyncio.gather(*(client.done for client in clients))
    elapsed = time.perf_counter() - started
    latencies = sorted(value for client in clients for value in client.latencies)
    p95 = latencies[int(len(latencies) * 0.95)] * 1000
    return len(latencies) / elapsed, p95, sum(client.failures for client in clients)


def _load_in_child(arguments: tuple[int, int, float]) -> tuple[float, float, int]:
    return asyncio.run(load(*arguments))


def start(kind: str, folder: Path, loop: str) -> tuple[subprocess.Popen[bytes], int]:
    root = folder / kind
    root.mkdir()
    for n in range(FILES):
        (root / f"f{n}.txt").write_text(CONTENT)
    port = free_port()
    environment = {
        **os.environ,
        "EC_APP_ROOT": str(root),
        "EC_HOME": str(folder / "home"),
        "EC_PORT": str(port),
    }
    command = (
        [sys.executable, "-c", PLAIN, str(root), str(port), loop]
        if kind == "plain"
        else [sys.executable, "-c", OURS, "serve", "--only", "gateway"]
    )
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
        time.sleep(0.1)
    raise SystemExit(f"{kind} did not start")


def path_check_costs(folder: Path) -> None:
    """Print what one path check costs next to ``os.path.realpath``."""
    from evercontext.files.contained_paths import Root
    from evercontext.files.policy import FilePolicy

    (folder / "check" / "a" / "b").mkdir(parents=True)
    (folder / "check" / "a" / "b" / "c.txt").write_text("x")
    root, policy, rounds = Root.open(folder / "check"), FilePolicy(), 5000
    base = str(folder / "check")

    def ours() -> None:
        with root.file("a/b/c.txt", policy):
            pass

    def plain() -> None:
        full = os.path.realpath(f"{base}/a/b/c.txt")
        assert full.startswith(base)
        os.close(os.open(full, os.O_RDONLY))

    for name, job in (("ours (open beneath, checked)", ours), ("realpath + prefix + open", plain)):
        started = time.process_time()
        for _ in range(rounds):
            job()
        print(f"path check  {name:30} {(time.process_time() - started) / rounds * 1e6:7.1f} µs CPU")
    root.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="*", default=[16, 100])
    parser.add_argument("--loop", default="asyncio")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        path_check_costs(folder)
        servers = {kind: start(kind, folder, options.loop) for kind in ("ours", "plain")}
        try:
            measure(servers, options)
        finally:
            for process, _ in servers.values():
                process.terminate()
                process.wait()


def measure(
    servers: dict[str, tuple[subprocess.Popen[bytes], int]], options: argparse.Namespace
) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for connections in options.connections:
            rounds: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in servers}
            for _ in range(options.rounds):
                for kind, (process, port) in servers.items():
                    spent = cpu_seconds(process.pid)
                    rate, p95, failures = pool.apply(
                        _load_in_child, ((port, connections, options.seconds),)
                    )
                    assert not failures, f"{kind}: {failures} failures"
                    per_request = (cpu_seconds(process.pid) - spent) / (rate * options.seconds)
                    rounds[kind].append((rate, p95, per_request * 1000))
            report(connections, rounds)


def report(connections: int, rounds: dict[str, list[tuple[float, float, float]]]) -> None:
    middle = {
        kind: [statistics.median(column) for column in zip(*figures, strict=True)]
        for kind, figures in rounds.items()
    }
    for kind, (rate, p95, cpu) in middle.items():
        print(
            f"{connections:4} connections  {kind:6} {rate:8.0f} req/s  p95 {p95:7.1f} ms  "
            f"CPU {cpu:5.2f} ms a request"
        )
    (ours, _, our_cpu), (plain, _, plain_cpu) = middle["ours"], middle["plain"]
    print(
        f"{connections:4} connections  ratio  {ours / plain:8.2f} in throughput, "
        f"{plain_cpu / our_cpu:.2f} in CPU (above 1: ours is faster)"
    )


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
