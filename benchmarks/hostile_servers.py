"""Fourteen servers that mean no good, one after another, beside one that does.

    python benchmarks/hostile_servers.py [--seconds 1.5]

For each: what it was caught at and how soon (goal 10 s), the memory it cost at most (goal 64 MB),
and how much longer the calls of its neighbour took meanwhile (95th percentile against that from
before; goal under 2). Each runs in a process of its own, so that memory is counted honestly.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evercontext.catalog.server_lifecycle import Backend, Patience, ServerEnvironment
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.servers import Scope, Servers
from evercontext.errors import EverContextError
from evercontext.settings import process_environment
from evercontext.storage.sqlite import SqliteStore

ODD = Path(__file__).parent.parent / "tests" / "catalog" / "odd_server.py"
HOSTILE = {
    "silent": "never answers a greeting",
    "silent-list": "never lists its tools",
    "silent-call": "never answers a call",
    "wrong-id": "answers another question",
    "twice": "answers twice",
    "long-line": "sends 100 MB in one line",
    "many": "has 100,000 tools",
    "endless": "has a list without end",
    "circle": "has a list that goes in circles",
    "die": "dies in the middle of an answer",
    "names": "has names that deceive",
    "schemas": "has schemas that loop and swell",
    "rug": "changes a tool after it was trusted",
    "poison": "speaks to the model in a description",
    "noise": "writes noise and escapes",
    "asks": "asks for a model's help",
}
GOALS = (10.0, 64.0, 2.0)


def peak() -> float:
    """The most memory this process ever had, in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


async def calls(backend: Backend, until: asyncio.Event | float) -> float:
    """Call the neighbour again and again; return the 95th percentile in milliseconds."""
    times: list[float] = []
    entry = (await backend.entries())[0]
    ends = time.monotonic() + until if isinstance(until, float) else None
    while (time.monotonic() < ends) if ends else not until.is_set():
        started = time.perf_counter()
        await backend.ask("tools/call", {"name": entry.name, "arguments": {"text": "x"}})
        times.append(1000 * (time.perf_counter() - started))
        await asyncio.sleep(0.002)
    return sorted(times)[int(0.95 * (len(times) - 1))]


async def provoke(servers: Servers, backend: Backend, how: str, folder: Path) -> str:
    """Use the hostile server; return what it was caught at."""
    if how == "rug":
        await servers.gather(Scope(), 20)
        (folder / "mark").touch()
        await backend.close()
        backend.next_try = 0.0
    try:
        entries = await backend.entries()
        if entries:
            params = {"name": entries[0].name, "arguments": {"text": "x"}}
            await backend.ask("tools/call", params)
    except EverContextError as problem:
        return str(problem)
    if backend.held:
        return f"held: {', '.join(backend.held)}"
    if backend.warnings:
        return backend.warnings[0]
    await asyncio.sleep(0.3)
    odd = backend.connection.unusable if backend.connection else None
    return str(odd)


async def one(how: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = await SqliteStore.open(folder / "house.db")
        table = ServerTable(store)
        base = (sys.executable, str(ODD))
        await table.put(ServerConfig("good", (*base, "good")))
        mark = str(folder / "mark")
        await table.put(ServerConfig("bad", (*base, how, mark), call_seconds=5))
        around = ServerEnvironment(process_environment(), folder, patience=Patience(5, 5))
        servers = Servers(table, around)
        try:
            bad, good = sorted(await servers.visible(Scope()), key=lambda b: b.config.id)
            before = await calls(good, seconds)
            memory, done = peak(), asyncio.Event()
            neighbour = asyncio.create_task(calls(good, done))
            await asyncio.sleep(0.2)
            started = time.perf_counter()
            said = await provoke(servers, bad, how, folder)
            spent = time.perf_counter() - started
            await asyncio.sleep(max(0.0, seconds - spent))
            done.set()
            figures = (spent, peak() - memory, await neighbour / before)
        finally:
            await servers.close()
            await store.close()
    verdict = "ok" if all(f <= g for f, g in zip(figures, GOALS, strict=True)) else "MISSED"
    shown = f"{figures[0]:5.2f} s {figures[1]:6.1f} MB {figures[2]:5.2f}x  {verdict:6s}"
    print(f"{HOSTILE[how]:38s} {shown}  {said[:90]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--one", choices=sorted(HOSTILE))
    options = parser.parse_args()
    if options.one:
        asyncio.run(one(options.one, options.seconds))
        return
    for how in HOSTILE:
        command = [sys.executable, __file__, "--one", how, "--seconds", str(options.seconds)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
