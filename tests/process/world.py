"""A small world around a cage: what a probe attacks, and whether it is still as it was."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evercontext.process.resource_limits import Limits
from evercontext.process.run import Completed, run
from evercontext.process.sandbox import Layer, Sandbox

PROBES = Path(__file__).with_name("probes.py")
LIMITS = Limits(cpu=2, processes=100, memory=512 << 20)
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(slots=True)
class World:
    """The project in its cage, and the things outside that must stay as they are."""

    root: Path
    outside: Path
    home: Path
    victim: subprocess.Popen[bytes]
    told: dict[str, object] = field(default_factory=dict)

    def sandbox(self, layer: Layer, **changes: object) -> Sandbox:
        options: dict[str, object] = {
            "protected": tuple(self.root / name for name in (".git", ".mcp.json", "part/.git")),
            "hidden": (self.root / ".env",),
            "readable": (PROBES, self.outside.parent / "shown"),
            "home": self.home,
            "limits": LIMITS,
        }
        return Sandbox(self.root, layer, **{**options, **changes})  # type: ignore[arg-type]

    async def attack(self, name: str, layer: Layer, **changes: object) -> Completed:
        argv = [sys.executable, "-S", "-E", str(PROBES), name, json.dumps(self.told)]
        return await run(
            argv,
            cwd=self.root,
            timeout=30,
            env=ENVIRONMENT,
            sandbox=self.sandbox(layer, **changes),
        )

    def snapshot(self) -> object:
        """Everything that no probe may change."""
        watched = [*_files(self.outside), *_files(self.home), *_files(self.root / ".git")]
        watched += [self.outside.parent / "shown/file", self.root / ".mcp.json", self.root / ".env"]
        facts = [(str(path), path.read_bytes(), _stat(path)) for path in watched]
        pattern = Path("/proc/sys/kernel/core_pattern").read_text()
        return facts, pattern, socket.gethostname(), self.victim.poll()


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _stat(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mode, found.st_mtime_ns, found.st_nlink


@contextlib.contextmanager
def made(base: Path) -> Iterator[World]:
    """Yield a world under ``base`` with servers and a victim, and take it down."""
    root, outside, home = base / "root", base / "outside", base / "home"
    inside = (root / ".git/hooks", root / "part/.git", root / "src")
    for directory in (*inside, outside, home / ".ssh", home / ".nebula"):
        directory.mkdir(parents=True)
    (root / ".git/config").write_text("[core]\n")
    (root / ".mcp.json").write_text('{"mcpServers": {}}')
    for path in (root / ".env", outside / "secret", home / ".ssh/id_ed25519"):
        path.write_text("canary")
    (base / "shown").mkdir()
    (base / "shown/file").write_text("shown")
    (home / ".nebula/config.json").write_text("canary")
    with contextlib.ExitStack() as stack:
        victim = subprocess.Popen(["sleep", "600"], env={**ENVIRONMENT, "SECRET": "canary"})
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        world = World(root, outside, home, victim)
        world.told = {
            "root": str(root),
            "outside": str(outside),
            "secret": str(outside / "secret"),
            "home": str(home),
            "readable": str(base / "shown/file"),
            "victim": victim.pid,
            **_servers(stack, outside, root),
            **_shared(stack),
        }
        yield world


def _servers(stack: contextlib.ExitStack, outside: Path, root: Path) -> dict[str, object]:
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    abstract = f"evercontext-{secrets.token_hex(8)}"
    named = {"unix": outside / "socket", "unix_inside": root / "src/socket"}
    listening = [tcp, _listening(stack, "\0" + abstract)]
    listening += [_listening(stack, str(path)) for path in named.values()]
    datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    datagram.bind(str(root / "src/datagram"))
    for server in listening:
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
    threading.Thread(target=_echo, args=(udp,), daemon=True).start()
    for server in (*listening, udp):
        stack.callback(_shut, server)
    return {
        "tcp": tcp.getsockname()[1],
        "udp": udp.getsockname()[1],
        "abstract": abstract,
        "unix_datagram": str(root / "src/datagram"),
        **{name: str(path) for name, path in named.items()},
    }


def _listening(stack: contextlib.ExitStack, address: str) -> socket.socket:
    server = stack.enter_context(socket.socket(socket.AF_UNIX))
    server.bind(address)
    server.listen()
    return server


def _greet(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"canary")


def _echo(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, sender = server.recvfrom(512)
            if sender is None:  # shut down
                return
            server.sendto(data, sender)


def _shut(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)


def _shared(stack: contextlib.ExitStack) -> dict[str, object]:
    """Make what a database might have of System V: a segment, a queue, a semaphore."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3), "big") + 1
    segment = libc.shmget(key, 4096, 0o1600)
    stack.callback(libc.shmctl, segment, 0, None)
    queue = libc.msgget(0, 0o1600)
    stack.callback(libc.msgctl, queue, 0, None)
    libc.msgsnd(queue, ctypes.create_string_buffer(b"\1\0\0\0\0\0\0\0canary", 15), 6, 0)
    semaphore = libc.semget(0, 1, 0o1600)
    stack.callback(libc.semctl, semaphore, 0, 0)
    return {"shared_memory": key, "segment": segment, "queue": queue, "semaphore": semaphore}
