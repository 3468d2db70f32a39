"""Serve 200 connections for ten minutes while everything goes wrong, then count what was lost.

    python -m benchmarks.soak [--minutes 10] [--seed 1] [--connections 200] [--every 8]

One ``evercontext serve`` (gateway, MCP, console, evaluator) and agents beside it, on a small disk
of their own. By the seed: SIGKILL of the server, a full disk, clocks that jump, removed and
truncated files of the home folder, and a model whose replies are hostile. Clients over REST, MCP,
WebSocket and the console's live stream read, write, search, remember and undo; each checks all
that it reads against what it was promised. At the end every acknowledged write and memory is
looked for. Exits 1 if one is missing, if a reader saw what nobody was promised, if anything was
written outside the root, or if the server did not come back.

A memory counts from the last accident that destroyed its database on; an audit line from the last
one that destroyed the log on. Disk full needs root, and is skipped with its reason elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

# Also when run as a file.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.soak_chaos import (
    COMMAND,
    Chaos,
    Server,
    disk,
    hostile_model,
    run_tasks,
    schedule,
)
from benchmarks.soak_clients import (
    ConsolePage,
    EvaluatorClient,
    FileClient,
    Ledger,
    McpClient,
    Tally,
    Target,
    World,
)

CANARY = "nothing may change this\n"
PAGES = 24
"""Pages of the console at most: it lets 32 in."""


@dataclass
class Soak:
    """One run: its world, and what it came to."""

    options: argparse.Namespace
    base: Path
    place: Path
    environment: dict[str, str]
    skipped: dict[str, str]
    world: World
    models: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    recovered: bool = False

    @property
    def home(self) -> Path:
        """The home folder of the server."""
        return self.place / "home"

    async def run(self) -> tuple[Server, Chaos]:
        """Let clients and accidents go on for their time, then a quiet while, then stop."""
        seconds = self.options.minutes * 60
        server = Server(self.world, self.base, self.place, self.environment)
        accidents = schedule(self.options.seed, seconds, self.options.every)
        chaos = Chaos(server, self.home, accidents, self.skipped)
        keeping = asyncio.create_task(server.keep_up())
        await self.world.target.ready.wait()
        clients = [asyncio.create_task(client.live()) for client in self.clients()]
        clients.append(asyncio.create_task(run_tasks(self.world, self.environment, self.tasks)))
        started = time.monotonic()
        await chaos.live(started)
        await asyncio.sleep(max(0.0, started + seconds - time.monotonic()))
        self.world.ending.set()
        await asyncio.gather(*clients)
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                await self.world.target.ready.wait()
                self.recovered = True
        server.stopping = True
        await keeping
        if server.process:
            server.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(server.process.wait, 30)
        server.kill()
        return server, chaos

    def clients(self) -> list[FileClient | EvaluatorClient | ConsolePage]:
        """Return the clients: mostly REST, the rest shared out."""
        most, world = self.options.connections, self.world
        pages, judges, over_mcp = min(PAGES, most // 8), most // 10, most // 4
        rest = most - pages - judges - over_mcp
        return [
            *(FileClient(world, f"rest{n}") for n in range(rest)),
            *(McpClient(world, f"mcp{n}") for n in range(over_mcp)),
            *(EvaluatorClient(world, f"judge{n}") for n in range(judges)),
            *(ConsolePage(world) for _ in range(pages)),
        ]

    def lost(self, chaos: Chaos) -> dict[str, list[str]]:
        """Return what was acknowledged and is not there any more."""
        ledger, root = self.world.ledger, self.place / "root"
        files = []
        for path, possible in ledger.states.items():
            file = root / path
            content = file.read_text() if file.exists() else None
            if content not in possible:
                files.append(f"{path}: {(content or 'nothing')[:60]!r}")
        return {
            "writes": files,
            "memories": self._lost_memories(chaos),
            "audit lines": self._lost_lines(chaos),
        }

    def _lost_memories(self, chaos: Chaos) -> list[str]:
        exported = subprocess.run(
            [*COMMAND, "memory", "export"], env=self.environment, capture_output=True, text=True
        )
        there = {json.loads(line)["content"] for line in exported.stdout.splitlines() if line}
        promised = self.world.ledger.memories.items()
        return [text for text, at in promised if at > chaos.database_harmed and text not in there]

    def _lost_lines(self, chaos: Chaos) -> list[str]:
        lines = set()
        for segment in (self.home / "traces").glob("*.jsonl"):
            for line in segment.read_text(errors="replace").splitlines():
                with suppress(ValueError):
                    event = json.loads(line)
                    if event["type"] == "audit":
                        lines.add(event["trace_id"])
        promised = self.world.ledger.acknowledged_writes
        return [trace for trace, at in promised if at > chaos.log_harmed and trace not in lines]


def report(soak: Soak, server: Server, chaos: Chaos) -> bool:
    """Print the figures; true if everything was as promised."""
    tally, ledger = soak.world.tally, soak.world.ledger
    print(f"\nseed {soak.options.seed}, {soak.options.minutes:g} minutes")
    print("accidents   ", dict(chaos.happened))
    for kind, reason in soak.skipped.items():
        print(f"skipped      {kind}: {reason}")
    print("model        ", dict(soak.models.most_common()))
    print("tasks of the agent", dict(soak.tasks))
    print(f"starts       {server.starts}, {server.failed_starts} of them failed")
    print(f"requests     {tally.requests.total()}")
    for kind, count in tally.requests.most_common():
        times = sorted(tally.seconds.get(kind, []))
        if times:
            middle, late = statistics.median(times), times[int(len(times) * 0.95)]
            ms = f"p50 {middle * 1000:8.1f} ms  p95 {late * 1000:8.1f} ms"
        print(f"  {kind:24} {count:8}  {ms if times else ''}")
    print(f"errors       {tally.errors.total()}")
    for kind, count in tally.errors.most_common():
        print(f"  {kind:40} {count:8}  {tally.samples[kind][:110]}")
    traces = sum(file.stat().st_size for file in (soak.home / "traces").glob("*.jsonl"))
    memory, open_files = server.memory_mb, server.descriptors
    if memory:
        print(f"memory       last {memory[-1]:.0f} MB, most {max(memory):.0f} MB")
        print(f"descriptors  last {open_files[-1]}, most {max(open_files)}")
    talk = sum(file.stat().st_size for file in soak.base.glob("server-*.txt"))
    crashes = sum(
        file.read_text(errors="replace").count("Traceback")
        for file in soak.base.glob("server-*.txt")
    )
    print(f"log          {traces / 1e6:.1f} MB of events; {talk} bytes on the terminal")
    print(f"tracebacks   {crashes}")
    lost = soak.lost(chaos)
    promised = len(ledger.acknowledged_writes), len(ledger.memories), ledger.undone
    print("acknowledged {} writes, {} memories, {} undone".format(*promised))
    for kind, missing in lost.items():
        print(f"lost         {len(missing)} {kind}", *missing[:5], sep="\n  ")
    print(f"wrong reads  {len(ledger.wrong)}", *ledger.wrong[:5], sep="\n  ")
    outside = (soak.place / "outside.txt").read_text() == CANARY
    print(f"outside      {'untouched' if outside else 'CHANGED'}")
    print(f"came back    {'yes' if soak.recovered else 'NO'}")
    return outside and soak.recovered and not ledger.wrong and not any(lost.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--every", type=float, default=8, help="seconds between two accidents")
    parser.add_argument("--pause", type=float, default=1, help="seconds a client waits")
    parser.add_argument("--logs", type=Path, help="a folder for what the servers say")
    options = parser.parse_args()
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        place, reason = disk(base, stack)
        skipped = {"disk full": reason} if reason else {}
        (place / "root").mkdir()
        (place / "outside.txt").write_text(CANARY)
        world = World(options.seed, Target(), Ledger(), Tally(), asyncio.Event(), options.pause)
        models: Counter[str] = Counter()
        url = stack.enter_context(hostile_model(options.seed, place / "outside.txt", models))
        environment = settings(base, place, url)
        soak = Soak(options, base, place, environment, skipped, world, models)
        server, chaos = asyncio.run(soak.run())
        good = report(soak, server, chaos)
        if options.logs:
            options.logs.mkdir(parents=True, exist_ok=True)
            for file in base.glob("server-*.txt"):
                (options.logs / file.name).write_bytes(file.read_bytes())
    return 0 if good else 1


def settings(base: Path, place: Path, url: str) -> dict[str, str]:
    """Return the environment of the server and of the agents."""
    (base / "user").mkdir()
    (base / "clock").write_text("0")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(base / "user"),
        "EC_HOME": str(place / "home"),
        "EC_APP_ROOT": str(place / "root"),
        "SOAK_CLOCK": str(base / "clock"),
        "EC_PORT": "0",
        "MCP_PORT": "0",
        "OPENAI_API_KEY": "sk-of-the-soak",
        "OPENAI_BASE_URL": url,
    }


if __name__ == "__main__":
    sys.exit(main())
