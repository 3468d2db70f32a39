"""The evaluator under load, and the local judge against documents that somebody damaged.

    python benchmarks/evaluator.py [--connections 50] [--calls 20] [--pairs 20] [--only pairs|load]

Load: a real ``evercontext serve --only evaluator`` is asked over that many connections at once,
first with the local judge, then with a ``codex`` on PATH that is a real program. Its descriptors
and the processes below it are counted in /proc before and after.

Pairs: descriptions of installed packages against copies damaged in ten ways. Which packages is
decided by the hashes of their names, what is damaged by a fixed seed: nobody chose them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import importlib.metadata
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from websockets.asyncio.client import connect

from evercontext.evaluation.document_parser import Document
from evercontext.evaluation.local_judge import judge
from evercontext.evaluation.rubric import Rubric

OURS = [sys.executable, "-c", "from evercontext.cli.main import main; main()"]
CODEX = """#!/bin/sh
cat > /dev/null
echo '{"rubric_scores": {"completeness": 9, "accuracy": 9, "clarity": 9, "usability": 9}}'
"""
SEED = 8
FEWEST_WORDS = 150
DOCUMENT = "# Title\n\n" + "A clear sentence about one thing. " * 60 + "\n\n## Usage\n\n- run it\n"


# Pairs ------------------------------------------------------------------------------------------


def descriptions() -> Iterator[tuple[str, str]]:
    """Installed packages with a real description, in the order of their names' hashes."""
    found = {}
    for package in importlib.metadata.distributions():
        name = (package.metadata["Name"] or "").lower()
        text = package.metadata.json.get("description") or ""
        if isinstance(text, str) and Document.parse(text).words >= FEWEST_WORDS:
            found[name] = text
    yield from sorted(found.items(), key=lambda pair: hashlib.sha256(pair[0].encode()).digest())


def cut_off(text: str, chance: random.Random) -> str:
    return text[: int(len(text) * chance.uniform(0.3, 0.6))]


def without_headings(text: str, chance: random.Random) -> str:
    text = re.sub(r"^#{1,6}\s+", "", text, flags=re.MULTILINE)
    return re.sub(r"^(=+|-{3,}|~{3,})\s*$", "", text, flags=re.MULTILINE)


def open_fences(text: str, chance: random.Random) -> str:
    fences = [found.start() for found in re.finditer(r"^```\s*$", text, re.MULTILINE)]
    for at in reversed(fences[-1:]):
        text = text[:at] + text[at + 3 :]
    return text


def repeated(text: str, chance: random.Random) -> str:
    parts = text.split("\n\n")
    long = [part for part in parts if len(part) > 80] or parts
    for part in chance.sample(long, min(5, len(long))):
        parts.insert(chance.randrange(len(parts)), part)
    return "\n\n".join(parts)


def emptied(text: str, chance: random.Random) -> str:
    parts = text.split("\n\n")
    keep = [p for p in parts if p.startswith("#") or chance.random() < 0.3]
    return "\n\n".join(keep)


def promised(text: str, chance: random.Random) -> str:
    parts = text.split("\n\n")
    for at in chance.sample(range(len(parts)), max(3, len(parts) // 5)):
        parts[at] = chance.choice(["TODO", "TBD", "Coming soon.", "To be written."])
    return "\n\n".join(parts)


def empty_links(text: str, chance: random.Random) -> str:
    text = re.sub(r"\]\([^)\s]+\)", "]()", text)
    return re.sub(r"<https?://[^>]+>`_", "<>`_", text)


def one_wall(text: str, chance: random.Random) -> str:
    return " ".join(text.split())


def garbled(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    for at in chance.sample(range(len(lines)), max(1, len(lines) // 6)):
        lines[at] = lines[at].replace("e", "Ã©").replace("'", "â€™")
    return "\n".join(lines)


def run_on(text: str, chance: random.Random) -> str:
    return re.sub(r"[.!?](?=\s)", " and", text)


DAMAGES: tuple[Callable[[str, random.Random], str], ...] = (
    cut_off,
    without_headings,
    open_fences,
    repeated,
    emptied,
    promised,
    empty_links,
    one_wall,
    garbled,
    run_on,
)


def pairs(count: int) -> Iterator[tuple[str, str, str, str]]:
    """Package, kind of damage, good text, damaged text."""
    chance = random.Random(SEED)
    for number, (name, good) in enumerate(descriptions()):
        if number == count:
            return
        for step in range(len(DAMAGES)):
            damage = DAMAGES[(number + step) % len(DAMAGES)]
            bad = damage(good, chance)
            if bad != good:
                yield name, damage.__name__, good, bad
                break


def score(text: str) -> float:
    rubric = Rubric.of()
    return rubric.score(judge(text, rubric).scores)


def compare_pairs(count: int, say: Callable[[str], None] = print) -> tuple[int, int, bool]:
    """How many damaged copies got less, of how many, and whether the judge agrees with itself."""
    right = total = 0
    same = True
    for name, damage, good, bad in pairs(count):
        one, two = score(good), score(bad)
        same = same and (one, two) == (score(good), score(bad))
        right, total = right + (one > two), total + 1
        say(f"  {'right' if one > two else 'WRONG'}  {one:5.2f} > {two:5.2f}  {damage:17} {name}")
    return right, total, same


# Load -------------------------------------------------------------------------------------------


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def below(pid: int) -> set[int]:
    """Every process below one, dead but unburied ones too."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            stat = (entry / "stat").read_text()
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def serving(folder: Path, mock: str) -> AsyncIterator[tuple[int, int]]:
    """A server of our own: its process and its port."""
    port = free_port()
    environment = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "MCP_PORT": str(port),
        "MCP_HOST": "127.0.0.1",
        "USE_MOCK_EVALUATOR": mock,
        "EC_HOME": str(folder / "home"),
    }
    (folder / "project").mkdir(exist_ok=True)
    command = [*OURS, "serve", "--only", "evaluator", "--root", str(folder / "project")]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            await asyncio.sleep(0.1)
        yield server.pid, port
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


async def visit(port: int, calls: int) -> int:
    """One client from its connection to its close; how many good answers it got."""
    good = 0
    async with connect(f"ws://127.0.0.1:{port}/mcp", open_timeout=60, ping_timeout=None) as link:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
        await link.send(json.dumps(hello))
        await link.recv()
        arguments = {"name": "evaluate_document", "arguments": {"content": DOCUMENT}}
        for number in range(calls):
            call = {"jsonrpc": "2.0", "id": number + 1, "method": "tools/call"}
            await link.send(json.dumps({**call, "params": arguments}))
            answer = json.loads(await link.recv())
            good += answer["id"] == number + 1 and "result" in answer
    return good


async def load(mock: str, connections: int, calls: int) -> tuple[int, int, int]:
    """Good answers, and the processes and descriptors that are left of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "codex").write_text(CODEX)
        (folder / "codex").chmod(0o755)
        async with serving(folder, mock) as (pid, port):
            await visit(port, 2)  # What is opened once and kept is open now.
            await settled(pid)
            before = len(below(pid)), descriptors(pid)
            answers = await asyncio.gather(*(visit(port, calls) for _ in range(connections)))
            await settled(pid)
            after = len(below(pid)), descriptors(pid)
    return sum(answers), after[0] - before[0], after[1] - before[1]


async def settled(pid: int) -> None:
    """Wait until nothing changes any more, at most ten seconds."""
    seen: list[tuple[int, int]] = []
    for _ in range(100):
        seen.append((len(below(pid)), descriptors(pid)))
        if len(seen) > 10 and len(set(seen[-10:])) == 1:
            return
        await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--only", choices=["pairs", "load"])
    given = parser.parse_args()
    if given.only != "load":
        print(f"pairs: {given.pairs} descriptions against damaged copies")
        right, total, same = compare_pairs(given.pairs)
        print(f"  {right} of {total} right; twice the same judgement: {'yes' if same else 'NO'}")
    if given.only != "pairs":
        for name, mock in (("local", "true"), ("codex", "false")):
            started = time.monotonic()
            good, processes, open_files = asyncio.run(load(mock, given.connections, given.calls))
            asked, seconds = given.connections * given.calls, time.monotonic() - started
            print(f"load, {name}: {given.connections} connections, {good} of {asked} answers")
            print(f"  in {seconds:.0f} s; left: {processes} processes, {open_files} descriptors")


if __name__ == "__main__":
    main()
