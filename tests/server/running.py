"""A real ``evercontext serve`` in a process of its own, and raw requests to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

COMMAND = "from evercontext.cli.main import main; main()"


@dataclass(frozen=True)
class Gateway:
    """A running gateway."""

    url: str
    root: Path
    home: Path
    process: subprocess.Popen[str]
    client: httpx2.Client

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def post(self, route: str, body: Any, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(f"/{route}", json=body, headers=named)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.get(path, headers=named)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def exchange(self, request: bytes, *, half_close: bool = False) -> bytes:
        """Send raw bytes and return all that comes back until the server closes or is silent."""
        with self.connect() as link:
            try:
                link.sendall(request)
                if half_close:
                    link.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return receive(link)

    def audit(self) -> list[dict[str, Any]]:
        """The audit lines so far, each with its trace id."""
        lines = []
        for segment in sorted((self.home / "traces").glob("*.jsonl")):
            for line in segment.read_text(encoding="utf-8").split("\n"):
                if line and (event := json.loads(line))["type"] == "audit":
                    lines.append({"trace_id": event["trace_id"], **event["data"]})
        return lines

    def resident(self) -> int:
        """Peak resident memory of the server in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let what arrives inside the block wait unread, however fast the machine is."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


def receive(link: socket.socket, silence: float = 15) -> bytes:
    """Return what arrives until the peer closes, resets, or has answered whole."""
    data = b""
    link.settimeout(silence)
    while not _is_whole(data):
        try:
            chunk = link.recv(65536)
        except (ConnectionResetError, TimeoutError):
            break
        if not chunk:
            break
        data += chunk
    return data


def _is_whole(data: bytes) -> bool:
    head, found, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if found and line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False


def status_of(answer: bytes) -> int:
    """The status of a raw answer; 0 if there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@contextmanager
def running(
    root: Path,
    home: Path,
    environment: Mapping[str, str] | None = None,
    code: str = COMMAND,
) -> Iterator[Gateway]:
    """Start ``evercontext serve`` on a free port and stop it at the end."""
    root.mkdir(exist_ok=True, parents=True)
    settings = {
        "EC_APP_ROOT": str(root),
        "EC_HOME": str(home),
        "EC_PORT": "0",
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        **(environment or {}),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--only", "gateway"],
        env=settings,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = _address(process)
        with httpx2.Client(base_url=url, timeout=60, verify=False) as client:
            yield Gateway(url, root, home, process, client)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith("REST"):
            return line.split()[1]
    raise AssertionError(f"the server ended with {process.wait()}: {said}")
