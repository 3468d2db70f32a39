"""How long the chat itself takes: from Enter to the request, and from a token to the screen.

    python benchmarks/chat_latency.py                 5,000 files, 20 messages
    python benchmarks/chat_latency.py --files 500 --messages 5 --json

A real terminal, a real repository, and a model on loopback that notes when a request arrives and
when it sends each token. A person needs some seconds for the first message, so the chat has as long
to prepare for it; that message is shown apart, too. Wall time; the same without the time in which
the chat could have run but the machine was busy with others (from the kernel's own count); and the
processor time that the chat spent. Goal: 50 ms at the 95th percentile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pexpect

GOAL_MS = 50
TOKENS = 30
BETWEEN_TOKENS = 0.1
PAUSE = 0.05
TYPING = 4.0
"""Seconds that somebody takes to write a first message."""
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_WHERE = "\x1b[6n"


class Model(BaseHTTPRequestHandler):
    """Sends tokens that can be told apart, and notes when."""

    arrived: ClassVar[list[float]] = []
    sent: ClassVar[dict[str, float]] = {}
    number: ClassVar[int] = 0

    def do_POST(self) -> None:
        """Answer one request."""
        now = time.monotonic()
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if not body.get("tools"):
            self._send("Nothing.", None)
            return self._end()
        Model.arrived.append(now)
        for _ in range(TOKENS):
            Model.number += 1
            token = f"tok{Model.number:05d}"
            self._send(f"{token} ", token)
            time.sleep(BETWEEN_TOKENS)
        return self._end()

    def _send(self, text: str | None, token: str | None) -> None:
        delta = {"content": text} if text else {}
        choice = {"index": 0, "delta": delta, "finish_reason": None if text else "stop"}
        chunk = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        if token:
            Model.sent[token] = time.monotonic()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def _end(self) -> None:
        self._send(None, None)
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


class Terminal:
    """The chat in a terminal; notes when each token was drawn."""

    def __init__(self, project: Path, home: Path, port: int) -> None:
        command = str(Path(sys.executable).with_name("evercontext"))
        environment = {
            **os.environ,
            "EC_HOME": str(home),
            "TERM": "xterm-256color",
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        }
        self.child: pexpect.spawn[str] = pexpect.spawn(
            command,
            ["chat", "-m", "openai:gpt-4.1-nano"],
            cwd=str(project),
            env=environment,
            encoding="utf-8",
            dimensions=(50, 100),
        )
        self.text = ""
        self.seen: dict[str, float] = {}

    def wait(self, text: str, patience: float = 120) -> None:
        """Read until this was drawn."""
        deadline = time.monotonic() + patience
        while text not in self.text:
            if time.monotonic() > deadline:
                raise SystemExit(f"never saw {text!r}:\n{self.text[-2000:]}")
            try:
                piece = self.child.read_nonblocking(65_536, timeout=0.2)
            except pexpect.TIMEOUT:
                continue
            now = time.monotonic()
            if _WHERE in piece:
                self.child.send("\x1b[40;1R")
            self.text += _SEQUENCE.sub("", piece)
            for token in re.findall(r"tok\d{5}", self.text[-4000:]):
                self.seen.setdefault(token, now)

    def spent(self) -> tuple[float, float]:
        """Milliseconds that the chat ran so far, and that it waited for a processor to run on."""
        ran = waited = 0
        for task in Path(f"/proc/{self.child.pid}/task").iterdir():
            try:
                on, off, _ = map(int, (task / "schedstat").read_text().split())
            except OSError:
                continue  # the thread ended
            ran += on
            # Threads may wait at the same time; what is drawn and sent waits for the first one.
            waited += off if task.name == str(self.child.pid) else 0
        return ran / 1e6, waited / 1e6


def measure(files: int, messages: int) -> dict[str, object]:
    """Hold a conversation and return what it took."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        project, home = Path(folder, "project"), Path(folder, "home")
        _make_repository(project, files)
        terminal = Terminal(project, home, server.server_port)
        terminal.wait("agent mode")
        time.sleep(TYPING)
        entered, busy, waiting = [], [], []
        for number in range(messages):
            terminal.child.send(f"question {number}")
            terminal.wait(f"question {number}")
            before = terminal.spent()
            time.sleep(PAUSE)
            # pexpect would wait 50 ms before the key, which is none of the chat's time.
            terminal.child.delaybeforesend = None
            entered.append(time.monotonic())
            terminal.child.send("\r")
            terminal.child.delaybeforesend = PAUSE
            while len(Model.arrived) <= number:
                time.sleep(0.001)
            after = terminal.spent()
            busy.append(after[0] - before[0])
            waiting.append(after[1] - before[1])
            terminal.wait(f"tok{(number + 1) * TOKENS:05d}")
            terminal.wait("done")
            terminal.text = ""
        # On a busy machine it ends later than pexpect waits; what was measured stands.
        with contextlib.suppress(pexpect.ExceptionPexpect):
            terminal.child.close(force=True)
    server.shutdown()
    wire = [1000 * (arrived - begun) for arrived, begun in zip(Model.arrived, entered, strict=True)]
    screen = [1000 * (terminal.seen[token] - sent) for token, sent in Model.sent.items()]
    return {
        "files": files,
        "messages": messages,
        "goal_ms": GOAL_MS,
        "first_enter_to_wire_ms": round(wire[0], 1),
        "first_enter_to_wire_cpu_ms": round(busy[0], 1),
        "enter_to_wire_ms": _percentiles(wire),
        "enter_to_wire_unloaded_ms": _percentiles(
            [max(0.0, whole - idle) for whole, idle in zip(wire, waiting, strict=True)]
        ),
        "enter_to_wire_cpu_ms": _percentiles(busy),
        "token_to_screen_ms": _percentiles(screen),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _make_repository(project: Path, files: int) -> None:
    for number in range(files):
        path = project / f"package{number // 100}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""Module {number}."""\n\n\ndef f{number}(x):\n    return x + {number}\n')
    for arguments in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *arguments], cwd=project, check=True)
    author = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    subprocess.run(["git", *author, "commit", "-qm", "all"], cwd=project, check=True)


def _percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    last = min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))
    return {"median": round(statistics.median(ordered), 1), "p95": round(ordered[last], 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.files, arguments.messages)
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:26} {value}")


if __name__ == "__main__":
    main()
