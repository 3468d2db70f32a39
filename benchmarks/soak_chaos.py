"""The accidents of the soak, in an order and at instants that a seed decides."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.soak_clients import Link, World

START = """
import contextlib, os, time
real, real_ns, state = time.time, time.time_ns, [0.0, 0]

def offset():
    now = time.monotonic()
    if now >= state[0]:
        state[0] = now + 0.5
        with contextlib.suppress(OSError, ValueError), open(os.environ["SOAK_CLOCK"]) as file:
            state[1] = int(file.read())
    return state[1]

time.time = lambda: real() + offset()
time.time_ns = lambda: real_ns() + offset() * 1_000_000_000
from evercontext.cli.main import main
main()
"""
"""The command, with a clock that a file sets: its whole seconds are added to the time."""
COMMAND = [sys.executable, "-c", START]
FULL_SECONDS = 4.0
STARTING = 0.2
"""Share of the accidents that may hit a server that only starts."""
DISK_MB = 768
JUMPS = (60 * 86_400, -7_200, 3_600, -30 * 86_400, 0)
KINDS = (
    "kill",
    "disk full",
    "clock jump",
    "remove event log",
    "truncate event log",
    "kill",
    "remove journal",
    "truncate journal",
    "disk full",
    "remove database",
    "clock jump",
    "kill and damage database",
)


@dataclass(frozen=True, slots=True)
class Accident:
    """One thing that happens at one instant."""

    at: float
    kind: str
    detail: float
    """What it needs of chance: a number from 0 to 1."""


def schedule(seed: int, seconds: float, every: float) -> list[Accident]:
    """Return the accidents of a run; every kind comes before one comes again."""
    chance, accidents, at, waiting = random.Random(f"{seed}-chaos"), [], every, list[str]()
    # The end is quiet: what was promised under the last accident has to be served after it.
    while at < seconds - 2 * every:
        if not waiting:
            waiting = list(KINDS)
            chance.shuffle(waiting)
        accidents.append(Accident(at, waiting.pop(), chance.random()))
        at += chance.uniform(0.6, 1.4) * every
    return accidents


def disk(base: Path, stack: ExitStack) -> tuple[Path, str]:
    """Return a folder on a small disk of its own, and why it is none where it is none."""
    place = base / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        return place, "needs root to mount a small disk"
    # In memory: what a kill may lose is the same, and the flushes of others do not hold us up.
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "soak", str(place)]
    mounted = subprocess.run(command, capture_output=True)
    if mounted.returncode:
        return place, mounted.stderr.decode().strip()
    stack.callback(subprocess.run, ["umount", "-l", str(place)], check=False)
    return place, ""


@dataclass
class Server:
    """``evercontext serve``, started again whenever it is gone."""

    world: World
    base: Path
    place: Path
    environment: dict[str, str]
    starts: int = 0
    failed_starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    memory_mb: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    stopping: bool = False

    @property
    def log(self) -> Path:
        """Where this start writes what it has to say."""
        return self.base / f"server-{self.starts}.txt"

    async def keep_up(self) -> None:
        """Start, watch, start again, until the soak ends."""
        while not self.stopping:
            if self.process is None or self.process.poll() is not None:
                self.world.target.ready.clear()
                await self._start()
            self._sample()
            await asyncio.sleep(0.5)

    async def _start(self) -> None:
        self.starts += 1
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--only", "gateway", "--only", "evaluator"],
                env=self.environment,
                stderr=file,
                stdout=file,
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            lines = self.log.read_text(errors="replace").splitlines()
            ports = {
                line.split()[0]: urlsplit(line.split()[1]).port
                for line in lines
                if line.startswith(("REST", "evaluator")) and len(line.split()) > 1
            }
            if "Ctrl-C ends" in lines:
                target = self.world.target
                target.port, target.evaluator_port = ports["REST"] or 0, ports["evaluator"] or 0
                await self._sign_in()
                target.ready.set()
                return
            await asyncio.sleep(0.1)
        self.failed_starts += 1

    async def _sign_in(self) -> None:
        """Come into the console by a link, as a person does."""
        target = self.world.target
        target.cookie = ""
        made = await asyncio.create_subprocess_exec(
            *COMMAND,
            "console",
            "--print",
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, problem = await made.communicate()
        if made.returncode:
            self.world.tally.error("no link into the console", problem.decode()[-200:])
            return
        link = urlsplit(out.decode().strip())
        target.console_host = link.netloc
        host, connection = {"Host": link.netloc}, Link(self.world)
        _, head, _ = await connection.ask("console link", f"{link.path}?{link.query}", None, host)
        cookie = head.get("set-cookie", "").split(";")[0]
        me = {**host, "Cookie": cookie}
        _, _, answer = await connection.ask("console me", "/console/api/me", None, me)
        connection.close()
        if isinstance(answer, dict) and "csrf" in answer:
            target.csrf, target.cookie = answer["csrf"], cookie

    def _sample(self) -> None:
        with suppress(OSError, IndexError):
            pid = self.process.pid if self.process else 0
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            self.memory_mb.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
            self.descriptors.append(len(os.listdir(f"/proc/{pid}/fd")))

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        if self.process and self.process.poll() is None:
            self.world.target.ready.clear()
            self.process.kill()
            self.process.wait()


@dataclass
class Chaos:
    """Lets the accidents happen, and notes what they took with them."""

    server: Server
    home: Path
    accidents: list[Accident]
    skipped: dict[str, str]
    """Kind → why it cannot be done here."""
    happened: Counter[str] = field(default_factory=Counter)
    database_harmed: float = 0.0
    log_harmed: float = 0.0

    async def live(self, started: float) -> None:
        """Wait for each instant and let it happen."""
        acts: dict[str, Callable[[float], Any]] = {
            "kill": lambda _: self.server.kill(),
            "disk full": self._fill,
            "clock jump": self._jump,
            "remove event log": self._remove_log,
            "truncate event log": self._truncate_log,
            "remove journal": lambda _: shutil.rmtree(self.home / "journal", ignore_errors=True),
            "truncate journal": lambda part: _halve(self._newest("journal/*/*.seg"), part),
            "remove database": self._remove_database,
            "kill and damage database": self._damage_database,
        }
        for accident in self.accidents:
            await asyncio.sleep(max(0.0, started + accident.at - time.monotonic()))
            if accident.kind in self.skipped:
                continue
            if accident.detail > STARTING:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.server.world.target.ready.wait(), 30)
            print(f"{accident.at:6.1f} s  {accident.kind}", flush=True)
            self.happened[accident.kind] += 1
            result = acts[accident.kind](accident.detail)
            if asyncio.iscoroutine(result):
                await result

    def _newest(self, pattern: str) -> Path | None:
        files = [(path.stat().st_mtime_ns, path) for path in self.home.glob(pattern)]
        return max(files)[1] if files else None

    def _remove_log(self, detail: float) -> None:
        self.log_harmed = time.time()
        if detail < 0.5:
            shutil.rmtree(self.home / "traces", ignore_errors=True)
        elif newest := self._newest("traces/*.jsonl"):
            newest.unlink()
        self.log_harmed = time.time()

    def _truncate_log(self, detail: float) -> None:
        _halve(self._newest("traces/*.jsonl"), detail)
        self.log_harmed = time.time()

    def _remove_database(self, detail: float) -> None:
        for path in self.home.glob("memory.db*"):
            path.unlink(missing_ok=True)
        self.database_harmed = time.time()

    def _damage_database(self, detail: float) -> None:
        self.server.kill()
        _halve(self.home / "memory.db", detail)
        self.database_harmed = time.time()

    async def _fill(self, detail: float) -> None:
        ballast = self.home.parent / "ballast"
        try:
            with suppress(OSError), ballast.open("wb") as file:
                free = shutil.disk_usage(ballast.parent).free
                os.posix_fallocate(file.fileno(), 0, max(free - 65_536, 1))
                while True:
                    file.seek(0, os.SEEK_END)
                    file.write(b"x" * 4096)
                    file.flush()
            await asyncio.sleep(FULL_SECONDS)
        finally:
            ballast.unlink(missing_ok=True)

    def _jump(self, detail: float) -> None:
        clock = Path(self.server.environment["SOAK_CLOCK"])
        clock.write_text(str(JUMPS[int(detail * len(JUMPS))]))


def _halve(path: Path | None, part: float) -> None:
    """Cut a file off somewhere in its second half, at whatever byte that is."""
    if path is not None and path.exists():
        size = path.stat().st_size
        os.truncate(path, int(size * (0.5 + part / 2)))


# A model that means no good


def _chunk(delta: dict[str, Any], end: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**body, 'choices': [choice]})}\n\n".encode()


def _call(name: str, arguments: Any) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return _chunk({"tool_calls": [call]}) + _chunk({}, "tool_calls") + b"data: [DONE]\n\n"


def replies(outside: Path) -> dict[str, tuple[int, bytes]]:
    """Return hostile answers by name: status and body."""
    out = str(outside)
    return {
        "not JSON": (200, b"data: {{{{\n\ndata: [DONE]\n\n"),
        "cut off": (200, _chunk({"content": "I will"})[:40]),
        "empty": (200, b""),
        "server error": (500, b"<html>oops</html>"),
        "refused": (401, b'{"error": {"message": "no"}}'),
        "too much": (200, _chunk({"content": "word " * 4000}) * 200),
        "writes outside": (200, _call("write_file", {"path": out, "content": "x"})),
        "climbs": (200, _call("write_file", {"path": "../../outside.txt", "content": "x"})),
        "no such tool": (200, _call("format_disk", {"all": True})),
        "arguments of no shape": (200, _call("write_file", ["path", 7])),
        "escapes": (200, _chunk({"content": "\x1b]0;x\x07\x1b[2J\u202e"}) + _chunk({}, "stop")),
        "no score": (200, _chunk({"content": "Great document!"}) + _chunk({}, "stop")),
    }


@contextmanager
def hostile_model(seed: int, outside: Path, counts: Counter[str]) -> Iterator[str]:
    """Play a model on loopback that answers by chance; yields its address."""
    chance, answers = random.Random(f"{seed}-model"), replies(outside)
    names = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            name = chance.choice(names)
            counts[name] += 1
            status, body = answers[name]
            with suppress(ConnectionError):
                self.send_response(status)
                kind = "text/event-stream" if status == 200 else "application/json"
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.1,))
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


async def run_tasks(world: World, environment: dict[str, str], ends: Counter[str]) -> None:
    """Let the agent work for the hostile model, one task after another."""
    while not world.ending.is_set():
        running = await asyncio.create_subprocess_exec(
            *COMMAND,
            *("run", "--timeout", "20", "--max-turns", "3", "--json", "--task"),
            "Add a line to tasks/notes.txt",
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(90):
                code = await running.wait()
        except TimeoutError:
            running.kill()
            code = await running.wait()
            ends["had to be killed"] += 1
        ends[f"exit {code}"] += 1
        with suppress(TimeoutError):
            await asyncio.wait_for(world.ending.wait(), 8 * world.pause)
