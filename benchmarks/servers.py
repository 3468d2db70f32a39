"""Twelve real servers behind one catalog: how quickly tools are found, and what is left behind.

    python benchmarks/servers.py [--pypi BIN] [--npm NODE_MODULES]

BIN is a folder with mcp-server-time, mcp-server-git and mcp-server-fetch (``pip install`` them into
a virtual environment), NODE_MODULES one with @modelcontextprotocol/server-filesystem, -memory and
-everything (``npm install`` them). The rest of the twelve are the small servers of our own tests.
Wall times, for that is what a person waits; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evercontext.access.router_projects import Projects
from evercontext.catalog.discovery_tools import Catalog
from evercontext.catalog.server_lifecycle import ServerEnvironment
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.catalog.servers import Scope, Servers
from evercontext.domain.tool import Caller, Door
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.settings import process_environment
from evercontext.storage.sqlite import SqliteStore
from evercontext.tools.toolbox import Toolbox

OWN = Path(__file__).parent.parent / "tests" / "catalog" / "odd_server.py"
TWELVE = 12
QUESTIONS = ("what time is it in Tokyo", "ファイルの内容を読む", "remember a fact", "say the text")


def real(options, folder: Path) -> list[ServerConfig]:
    """The servers of other people that are at hand."""
    found = []
    if options.pypi:
        repository = folder / "repository"
        repository.mkdir()
        subprocess.run(["git", "init", "-q", repository], check=True)
        found += [
            ServerConfig("time", (f"{options.pypi}/mcp-server-time",)),
            ServerConfig("git", (f"{options.pypi}/mcp-server-git", "-r", str(repository))),
            ServerConfig("fetch", (f"{options.pypi}/mcp-server-fetch",)),
        ]
    if options.npm:
        place = f"{options.npm}/@modelcontextprotocol"
        env = {"MEMORY_FILE_PATH": str(folder / "memory.json")}
        found += [
            ServerConfig(
                "filesystem", ("node", f"{place}/server-filesystem/dist/index.js", str(folder))
            ),
            ServerConfig("memory", ("node", f"{place}/server-memory/dist/index.js"), env=env),
            ServerConfig("everything", ("node", f"{place}/server-everything/dist/index.js")),
        ]
    return found


def descendants() -> set[int]:
    """Every process below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rsplit(")")[-1].split()[1]
                )
            except OSError:
                continue
    found: set[int] = set()
    grown = {os.getpid()}
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in grown} - found
        found |= grown
    return found


class House:
    """A catalog over some servers, opened and closed as the product does it."""

    def __init__(self, folder: Path, configs: list[ServerConfig]) -> None:
        self._folder, self._configs = folder, configs

    async def __aenter__(self) -> House:
        self.store = await SqliteStore.open(self._folder / "house.db")
        table = ServerTable(self.store)
        for config in self._configs:
            await table.put(config)
        self.servers = Servers(table, ServerEnvironment(process_environment(), self._folder))
        self.events = EventLog(self._folder / "traces", Redactor([]))
        self._box = Toolbox(
            Catalog(self.servers, Projects(self.store), self._folder).tools(), self.events
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.servers.close()
        await self.store.close()
        self.events.close()

    async def discover(self, question: str) -> tuple[float, int]:
        """Seconds it took, and how many servers answered."""
        started = time.perf_counter()
        asked = {"query": question, "maxResults": 100}
        found = await self._box.call("tool_discovery", asked, Caller("bench", Door.MCP))
        spent = time.perf_counter() - started
        assert found.ok, found.text
        return spent, len({one["serverName"] for one in found.data["results"]})

    async def warm(self) -> None:
        """Wait until every server that will answer has."""
        await self.servers.gather(Scope(), 60)


async def measure(folder: Path, configs: list[ServerConfig], dead: list[ServerConfig]) -> None:
    before = descendants()
    async with House(folder, configs) as house:
        await house.warm()
        await house.discover("warm")
        times = [await house.discover(q) for q in QUESTIONS * 5]
        longest = 1000 * max(spent for spent, _ in times)
        middle = 1000 * statistics.median(spent for spent, _ in times)
        running = len(descendants() - before)
        print(
            f"{len(configs)} servers warm: median {middle:.0f} ms, longest {longest:.0f} ms"
            f"  (goal 300), {running} processes",
            flush=True,
        )
    left = descendants() - before
    print(f"after the stop: {len(left)} processes left (goal 0)", flush=True)
    mixed = [*configs[: TWELVE - len(dead)], *dead]
    with tempfile.TemporaryDirectory() as other:
        async with House(Path(other), mixed) as house:
            spent, answered = await house.discover("what time is it")
            print(
                f"cold, {len(dead)} of {len(mixed)} dead: {1000 * spent:.0f} ms"
                f"  (goal 3000), {answered} servers answered by then",
                flush=True,
            )
            await house.warm()
            spent, answered = await house.discover("what time is it")
            print(
                f"warm, {len(dead)} of {len(mixed)} dead: {1000 * spent:.0f} ms,"
                f" {answered} servers answered",
                flush=True,
            )
    left = descendants() - before
    print(f"after the stop: {len(left)} processes left (goal 0)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pypi", metavar="BIN")
    parser.add_argument("--npm", metavar="NODE_MODULES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        configs = real(options, folder)
        names = ", ".join(config.id for config in configs) or "none"
        print(f"servers of others: {names}; the rest of {TWELVE} are our own", flush=True)
        missing = TWELVE - len(configs)
        configs += [ServerConfig(f"own{i}", (sys.executable, str(OWN))) for i in range(missing)]
        dead = [
            ServerConfig("mute", (sys.executable, str(OWN), "silent")),
            ServerConfig("gone", ("no-such-program",)),
        ]
        asyncio.run(measure(folder, configs, dead))


if __name__ == "__main__":
    main()
