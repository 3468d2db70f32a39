"""Our gateway, every check on, next to a plain FastAPI app whose writes are as durable.

    python benchmarks/gateway.py [--seconds 4] [--rounds 3] [--connections 1 16 100]
                                 [--loads reads writes mixed] [--loop asyncio|uvloop]

Both run as one process each, with the same HTTP parser and event loop; the client is a process of
its own. Rounds alternate between the two servers, so that a busy machine hits both; the figures
are medians of the rounds. A read and a write carry 4 KB; ``mixed`` is four reads and a write.
BENCH_DIR chooses the disk.
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
from dataclasses import dataclass
from pathlib import Path

FILES = 256
CONTENT = "".join(f"line {n:3} of it\n" for n in range(256))
OURS = "from evercontext.cli.main import main; main()"
GUARANTEES = """\
what is true before an answer      ours                                 plain FastAPI
  path                             held by descriptors, links refused   resolved string below root
  new content                      temporary file, fsync, rename        the same
  directory                        fsync                                the same
  line of the call, a write        on disk before the write begins      on disk before the answer
  line of the answer               written; on disk within 50 ms        the same line
  old content, for undo            in the journal, on disk              not kept
  what an editor changed meanwhile refused, never overwritten           overwritten
  a line for each read             three, in the log's file             one, in the log's file
  Host, Origin, body, JSON twice   checked                              not checked
"""
PLAIN = """
import json, os, secrets, sys, time
from pathlib import Path
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

ROOT = Path(sys.argv[1]).resolve()
AUDIT = os.open(sys.argv[4], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
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

def audit(method: str, path: str, size: int) -> None:
    line = {"at": time.time(), "method": method, "path": path, "size": size, "status": 200}
    os.write(AUDIT, json.dumps(line).encode() + b"\\n")

@app.post("/read_file")
def read_file(body: Read):
    content = inside(body.path).read_text(encoding="utf-8")
    audit("read_file", body.path, len(content))
    return {"content": content}

@app.post("/write_file")
def write_file(body: Write):
    full = inside(body.path)
    temporary = full.with_name(f".{secrets.token_hex(8)}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(body.content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(full)
    directory = os.open(full.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    audit("write_file", body.path, len(body.content))
    os.fdatasync(AUDIT)
    return {"status": "ok", "path": body.path}

uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", loop=sys.argv[3], http="httptools")
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


LOADS = {"reads": (1, 0), "writes": (0, 1), "mixed": (4, 1)}
"""Reads and writes in a cycle."""


def requests(port: int, load: str) -> list[bytes]:
    """Return a cycle of raw requests."""
    reads, writes = LOADS[load]

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
        cycle += [raw("read_file", {"path": path})] * reads
        content = CONTENT.replace("line 100 of it", f"line 100 of {n}")
        body = {"path": path, "content": content, "mode": "overwrite"}
        cycle += [raw("write_file", body)] * writes
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


@dataclass(frozen=True, slots=True)
class Figures:
    """What one round, or the median of several, came to."""

    rate: float
    p50: float
    p95: float
    cpu: float = 0.0


async def drive(port: int, load: str, connections: int, seconds: float) -> Figures:
    """Ask over so many connections for so long; times in ms."""
    cycle, loop = requests(port, load), asyncio.get_running_loop()
    started = time.perf_counter()
    clients = []
    for n in range(connections):
        _, client = await loop.create_connection(
            lambda n=n: Client(cycle, n * 37, started + seconds), "127.0.0.1", port
        )
        clients.append(client)
    await asyncio.gather(*(client.done for client in clients))
    elapsed = time.perf_counter() - started
    failures = sum(client.failures for client in clients)
    assert not failures, f"{failures} failures at port {port}"
    latencies = sorted(value * 1000 for client in clients for value in client.latencies)
    p50, p95 = (latencies[int(len(latencies) * part)] for part in (0.5, 0.95))
    return Figures(len(latencies) / elapsed, p50, p95)


def _drive_in_child(arguments: tuple[int, str, int, float]) -> Figures:
    return asyncio.run(drive(*arguments))


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
        [sys.executable, "-c", PLAIN, str(root), str(port), loop, str(folder / "audit.jsonl")]
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
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 16, 100])
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=list(LOADS))
    parser.add_argument("--loop", default="asyncio", help="event loop of the plain server")
    options = parser.parse_args()
    print(GUARANTEES)
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
        for load in options.loads:
            for connections in options.connections:
                rounds: dict[str, list[Figures]] = {kind: [] for kind in servers}
                for _ in range(options.rounds):
                    for kind, (process, port) in servers.items():
                        spent = cpu_seconds(process.pid)
                        job = (port, load, connections, options.seconds)
                        figures = pool.apply(_drive_in_child, (job,))
                        cpu = (cpu_seconds(process.pid) - spent) * 1000
                        per_request = cpu / (figures.rate * options.seconds)
                        rounds[kind].append(
                            Figures(figures.rate, figures.p50, figures.p95, per_request)
                        )
                report(f"{load:6} {connections:4} conn", rounds)


def report(name: str, rounds: dict[str, list[Figures]]) -> None:
    middle = {
        kind: Figures(
            *(
                statistics.median(getattr(row, field) for row in rows)
                for field in ("rate", "p50", "p95", "cpu")
            )
        )
        for kind, rows in rounds.items()
    }
    for kind, row in middle.items():
        print(
            f"{name}  {kind:6} {row.rate:7.0f} req/s  p50 {row.p50:7.2f} ms  p95 {row.p95:7.2f} ms"
            f"  CPU {row.cpu:5.2f} ms a request"
        )
    ours, plain = middle["ours"], middle["plain"]
    good = ours.rate >= plain.rate and ours.p95 <= plain.p95
    print(
        f"{name}  ratio  {ours.rate / plain.rate:7.2f} rate   p50 {ours.p50 / plain.p50:7.2f}     "
        f"p95 {ours.p95 / plain.p95:7.2f}     CPU {ours.cpu / plain.cpu:5.2f}"
        f"   {'goal met' if good else 'goal missed'}",
        flush=True,
    )


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
