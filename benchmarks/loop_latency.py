"""How long a client waits for a small read and a small write while others are hostile.

    python benchmarks/loop_latency.py                            this tree, and a plain FastAPI
    python benchmarks/loop_latency.py --source ../before/src     another checkout, this Python

Three states of the server: nobody else is there; clients send searches over the whole tree, 24 at
a time, and hang up; a client sends edits that replace every comma of a file, and chains that would
grow without end. Each figure is over all requests of one client that asks again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

FILES = 3000
SECONDS = 8.0
PLAIN = """
import os, pathlib, sys, uvicorn
from fastapi import FastAPI

ROOT = pathlib.Path(sys.argv[1])
app = FastAPI()

@app.post("/read_file")
def read(body: dict):
    return {"content": (ROOT / body["path"]).read_text()}

@app.post("/write_file")
def write(body: dict):
    with open(ROOT / "new", "w") as file:
        file.write(body["content"])
        file.flush()
        os.fsync(file.fileno())
    os.replace(ROOT / "new", ROOT / body["path"])
    return {"status": "ok"}

@app.post("/search_files")
def search(body: dict):
    found = []
    for path in sorted((ROOT / body["directory"]).rglob("*")):
        if path.is_file() and body["keyword"] in path.read_text():
            found.append(str(path))
    return {"result": found}

@app.post("/edit_file")
def edit(body: dict):
    text = (ROOT / body["path"]).read_text()
    for change in body["edits"]:
        text = text.replace(change["old"], change["new"])
    (ROOT / body["path"]).write_text(text)
    return {"status": "ok"}

uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""
COMMAS = [
    {"old": ",", "new": ";", "replace_all": True},
    {"old": ";", "new": ",", "replace_all": True},
]
CHAIN = [{"old": "a", "new": "a" * 8, "replace_all": True}] * 7


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def started(command: list[str], env: dict[str, str], port: int) -> Iterator[str]:
    process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                httpx2.post(f"{url}/read_file", json={"path": "small.txt"}, timeout=60)
                break
            except httpx2.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def asking(url: str, over: threading.Event) -> dict[str, list[float]]:
    """Read and write until it is over, and note how long each took."""
    waits: dict[str, list[float]] = {"read": [], "write": []}
    write = {"path": "own.txt", "content": "x", "mode": "overwrite"}
    with httpx2.Client(base_url=url, timeout=300) as client:
        while not over.is_set():
            for kind, body in (("read", {"path": "small.txt"}), ("write", write)):
                start = time.perf_counter()
                client.post(f"/{kind}_file", json=body).raise_for_status()
                waits[kind].append(time.perf_counter() - start)
            time.sleep(0.01)
    return waits


def search_and_leave(url: str, over: threading.Event) -> None:
    body = json.dumps({"directory": "large", "keyword": "not there"}).encode()
    port = int(url.rsplit(":", 1)[1])
    head = f"POST /search_files HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    while not over.is_set():
        links = [socket.create_connection(("127.0.0.1", port)) for _ in range(24)]
        for link in links:
            link.sendall(head.encode() + body)
        over.wait(0.2)
        for link in links:
            link.close()
        over.wait(1.0)


def edit_ours(url: str, over: threading.Event) -> None:
    from mcp import Client

    async def edit() -> None:
        async with Client(f"{url}/mcp", read_timeout_seconds=300) as client:
            while not over.is_set():
                for path, edits in (("commas.txt", COMMAS), ("grow.txt", CHAIN)):
                    await client.call_tool("read_file", {"path": path})
                    await client.call_tool("edit_file", {"path": path, "edits": edits})

    asyncio.run(edit())


def edit_plain(url: str, over: threading.Event) -> None:
    while not over.is_set():
        # Without a limit the chain would fill the memory: only the commas.
        httpx2.post(f"{url}/edit_file", json={"path": "commas.txt", "edits": COMMAS}, timeout=300)


def measured(name: str, url: str, hostile: Callable[[str, threading.Event], None] | None) -> None:
    over = threading.Event()
    attack = threading.Thread(target=hostile, args=(url, over)) if hostile else None
    if attack:
        attack.start()
        time.sleep(0.5)
    clock = threading.Timer(SECONDS, over.set)
    clock.start()
    waits = asking(url, over)
    if attack:
        attack.join()
    for kind, found in waits.items():
        found.sort()
        p99, worst = found[min(len(found) - 1, len(found) * 99 // 100)], found[-1]
        print(
            f"{name:34} {kind:6} {len(found):5} {1000 * p99:9.1f} {1000 * worst:9.1f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default=str(Path(__file__).parent.parent / "src"))
    parser.add_argument("--without-plain", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "root"), Path(folder, "home")
        (root / "large").mkdir(parents=True)
        for number in range(FILES):
            (root / "large" / f"{number}.txt").write_text("hello world\n" * 300)
        (root / "small.txt").write_text("small\n")
        (root / "grow.txt").write_text("a")
        (root / "commas.txt").write_text("," * 59_000)
        print(f"{'state':34} {'asked':6} {'times':>5} {'p99 ms':>9} {'worst ms':>9}")
        env = {
            **os.environ,
            "PYTHONPATH": given.source,
            "EC_HOME": str(home),
            "HOME": folder,
            "EC_APP_ROOT": str(root),
        }
        serve = "from evercontext.cli.main import main; main()"
        ours = [sys.executable, "-c", serve, "serve", "--only", "gateway", "--port"]
        plain = [sys.executable, "-c", PLAIN, str(root)]
        for name, command, hostile in (
            ("evercontext, alone", ours, None),
            ("evercontext, 24 abandoned searches", ours, search_and_leave),
            ("evercontext, hostile edits", ours, edit_ours),
            ("plain FastAPI, alone", plain, None),
            ("plain FastAPI, abandoned searches", plain, search_and_leave),
            ("plain FastAPI, edits", plain, edit_plain),
        ):
            if command is ours or not given.without_plain:
                port = free_port()
                with started([*command, str(port)], env, port) as url:
                    measured(name, url, hostile)


if __name__ == "__main__":
    main()
