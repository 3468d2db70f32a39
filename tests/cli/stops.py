"""Commands at work on hostile input, each to be stopped while it works.

Shared by ``tests/cli/test_stopping.py`` and ``benchmarks/stopping.py``.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from tests.cli.command import EVERCONTEXT

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
DEAF = (
    "import pathlib, signal, time\n"
    "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"
    "    signal.signal(number, signal.SIG_IGN)\n"
    "pathlib.Path('work/begun').touch()\n"
    "time.sleep(1000)\n"
)
"""A program that hears no signal and never ends."""
_LOOKS = 10
"""A reader that was there so often, every 20 ms, waits in its read."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
_PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
_TWIN = (
    "import sys, time\n"
    "until = time.monotonic() + float(sys.argv[1])\n"
    "for number in range(int(float(sys.argv[1]) * 20_000_000)): number & 7\n"
    "time.sleep(max(0.0, until - time.monotonic()))\n"
)
"""Takes so many seconds, and longer on a machine that is slow or busy."""


class ModelServer:
    """A model's server that takes a request and never answers, or drips for ever."""

    def __init__(self, *, drips: bool) -> None:
        self.asked = threading.Event()
        self._drips = drips
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._held: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Hang up."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for one in (self._listener, *self._held):
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._held.append(connection)
                threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            head = connection.recv(65536)
            if self._drips:
                connection.sendall(_HEAD)
            # Before the model is asked, the server is asked what it can do.
            if head.startswith(b"POST"):
                self.asked.set()
            while self._drips:
                connection.sendall(_PIECE)
                time.sleep(0.02)


@dataclass
class Stage:
    """Where one command works."""

    root: Path
    home: Path
    servers: list[ModelServer] = field(default_factory=list)
    pipes: list[int] = field(default_factory=list)
    """Ends of pipes that are held open."""

    def server(self, *, drips: bool = False) -> ModelServer:
        """Start a model's server."""
        self.servers.append(ModelServer(drips=drips))
        return self.servers[-1]

    def script(self, *turns: dict[str, Any]) -> str:
        """Write a script for the model and return its name."""
        file = self.root.parent / "script.jsonl"
        file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        return f"scripted:{file}"

    def traced(self, word: str) -> bool:
        """Tell whether the log of events has a word."""
        files = (self.home / "traces").rglob("*.jsonl")
        return any(word.encode() in file.read_bytes() for file in files)


@dataclass
class Work:
    """A command, and how to know that it is at work."""

    arguments: list[str]
    begun: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes | None = None
    """Written at the start; the pipe stays open."""


def asks(stage: Stage, *arguments: str, drips: bool = False, stdin: bytes | None = None) -> Work:
    """A command whose model does not come to an end."""
    server = stage.server(drips=drips)
    env = {"OPENAI_API_KEY": "k" * 20, "OPENAI_BASE_URL": server.url}
    return Work([*arguments], server.asked.is_set, env, stdin)


def _run_hangs(stage: Stage) -> Work:
    return asks(stage, "run", "--task", "x", "-m", "openai:gpt-x")


def _run_drips(stage: Stage) -> Work:
    return asks(stage, "run", "--task", "x", "-m", "openai:gpt-x", drips=True)


def _run_command(stage: Stage) -> Work:
    (stage.root / "work").mkdir()
    (stage.root / "deaf.py").write_text(DEAF)
    call = {"name": "run_command", "arguments": {"command": f"{sys.executable} deaf.py"}}
    model = stage.script({"tool_calls": [call]}, {"text": "done"})
    return Work(["run", "--task", "x", "-m", model], (stage.root / "work/begun").exists)


def edits() -> list[dict[str, Any]]:
    """Calls that write a large file and change every line of it, again and again."""
    written = {"path": "big.txt", "content": "a,\n" * 40_000, "mode": "create"}
    changes = [
        {"old": f"{old},", "new": f"{new},", "replace_all": True}
        for old, new in pairwise(ascii_lowercase)
    ]
    edited = [{"path": "big.txt", "edits": [change]} for change in changes]
    calls = [{"name": "edit_file", "arguments": arguments} for arguments in edited]
    return [{"name": "write_file", "arguments": written}, *calls]


def _run_edits(stage: Stage) -> Work:
    model = stage.script(*({"tool_calls": [call]} for call in edits()), {"text": "done"})
    return Work(["run", "--task", "x", "-m", model], lambda: stage.traced("edit_file"))


def _plan_hangs(stage: Stage) -> Work:
    return asks(stage, "plan", "--task", "x", "-m", "openai:gpt-x")


def _fix_check(stage: Stage) -> Work:
    (stage.root / "work").mkdir()
    (stage.root / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "0"\n')
    # In the root, where unittest looks, too: pytest may not be there.
    (stage.root / "test_a.py").write_text(f"{DEAF}\ndef test_nothing():\n    pass\n")
    return Work(["fix"], (stage.root / "work/begun").exists)


def _serve(stage: Stage) -> Work:
    """A server that a client asked for something and that never hears the end of the request."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def is_asked() -> bool:
        with suppress(OSError):
            client = socket.create_connection(("127.0.0.1", port), 1)
            client.sendall(b"POST /read_file HTTP/1.1\r\nHost: localhost\r\n")
            stage.pipes.append(client.detach())
        return bool(stage.pipes)

    return Work(["serve", "--only", "gateway", "--port", str(port)], is_asked)


def _chat_hangs(stage: Stage) -> Work:
    return asks(stage, "chat", "-m", "openai:gpt-x", stdin=b"hello\n")


def _mcp_edits(stage: Stage) -> Work:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    said: list[dict[str, Any]] = [
        {"method": "initialize", "params": hello, "id": 0},
        {"method": "notifications/initialized"},
    ]
    said += [
        {"method": "tools/call", "params": call, "id": number}
        for number, call in enumerate(edits(), 1)
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in said]
    return Work(["mcp"], lambda: stage.traced("edit_file"), stdin=b"".join(lines))


def _many_files(stage: Stage) -> None:
    body = "".join(f"def heron_{n}(a, b):\n    return a + b * {n}\n\n" for n in range(600))
    for number in range(200):
        (stage.root / f"m{number}.py").write_text(f"x = {number}\n{body}")


def _index(stage: Stage) -> Work:
    _many_files(stage)
    return Work(["index"], lambda: any(stage.root.glob(".evercontext/*")) or _indexes(stage))


def _indexes(stage: Stage) -> bool:
    return any(stage.home.rglob("*.db")) or any(stage.home.rglob("*index*"))


def _search(stage: Stage) -> Work:
    _many_files(stage)
    return Work(["search", "heron"], lambda: _index(stage).begun())


def _search_idle(stage: Stage) -> Work:
    (stage.root / "a.py").write_text("def heron():\n    pass\n")
    answers = stage.root.parent / "out"
    return Work(["search", "--stdin"], lambda: b"heron" in answers.read_bytes(), stdin=b"heron\n")


def _evaluate_hangs(stage: Stage) -> Work:
    (stage.root / "a.md").write_text("# A\n\nText.\n")
    return asks(stage, "evaluate", "a.md", "--judge", "openai:gpt-x")


def _evaluate_large(stage: Stage) -> Work:
    (stage.root / "a.md").write_text("|a\n" * 340_000)
    return Work(["evaluate", "a.md", "--judge", "local"], lambda: stage.traced("judge running"))


def _evaluate_pipe(stage: Stage) -> Work:
    return _piped(stage, "evaluate", "a.md", "--judge", "local")


def _improve_hangs(stage: Stage) -> Work:
    (stage.root / "a.md").write_text("# A\n\nText.\n")
    return asks(stage, "improve", "a.md", "--judge", "local", "-m", "openai:gpt-x")


def _improve_drips(stage: Stage) -> Work:
    (stage.root / "a.md").write_text("# A\n\nText.\n")
    return asks(stage, "improve", "a.md", "--judge", "local", "-m", "openai:gpt-x", drips=True)


def _piped(stage: Stage, *arguments: str) -> Work:
    """A command that is given a pipe nobody writes to."""
    pipe = stage.root / "a.md"
    os.mkfifo(pipe)

    def is_read() -> bool:
        # Without a reader this fails; once it does not, the reader waits for what never comes. A
        # signal between its opening and its first read would be heard only after that read.
        with suppress(OSError):
            stage.pipes.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return len(stage.pipes) > _LOOKS

    return Work([*arguments], is_read)


WORKS: dict[str, Callable[[Stage], Work]] = {
    "run, a model that hangs": _run_hangs,
    "run, a model that drips": _run_drips,
    "run, a command that hears no signal": _run_command,
    "run, edits of a large file": _run_edits,
    "plan, a model that hangs": _plan_hangs,
    "fix, a check that hears no signal": _fix_check,
    "serve, a request without an end": _serve,
    "chat, a model that hangs": _chat_hangs,
    "mcp, edits of a large file": _mcp_edits,
    "index, many files": _index,
    "search, many files": _search,
    "search --stdin, nothing to do": _search_idle,
    "evaluate, a judge that hangs": _evaluate_hangs,
    "evaluate, a large document": _evaluate_large,
    "evaluate, a pipe": _evaluate_pipe,
    "improve, a model that hangs": _improve_hangs,
    "improve, a model that drips": _improve_drips,
}
TIMED = [name for name in WORKS if name.startswith("run, ")]
"""Those that take ``--timeout``."""


@contextmanager
def at_work(name: str, folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command and yield it once it is at work, or has ended."""
    stage = Stage(folder / "project", folder / "home")
    stage.root.mkdir(parents=True)
    work = WORKS[name](stage)
    env = {**os.environ, "EC_HOME": str(stage.home), **work.env}
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [EVERCONTEXT, *work.arguments, *more],
            cwd=stage.root,
            env=env,
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL if work.stdin is None else subprocess.PIPE,
        )
    feeder = threading.Thread(target=_feed, args=[process, work.stdin or b""])
    try:
        feeder.start()
        while process.poll() is None and not work.begun():
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()
        feeder.join()
        if process.stdin:
            with suppress(OSError):
                process.stdin.close()
        for pipe in stage.pipes:
            os.close(pipe)
        for server in stage.servers:
            server.close()


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    if process.stdin:
        with suppress(OSError):
            process.stdin.write(data)
            process.stdin.flush()


@contextmanager
def twin(seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes so many seconds, and longer where everything does."""
    with subprocess.Popen([sys.executable, "-c", _TWIN, str(seconds)]) as process:
        try:
            yield process
        finally:
            process.kill()
