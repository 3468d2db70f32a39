"""The protocol's conformance suite: a reference server alone, and the same one behind our router.

    python benchmarks/conformance.py FOLDER [--revision 2025-11-25] [--scenario NAME] [--own]

FOLDER keeps what is installed: the suite from npm, with a node of its own, and the reference
server, which the source distribution of ``mcp`` on PyPI brings along. Every scenario that the
suite has for a revision is run twice, and both scores are printed side by side. The router names
tools, prompts and resources by their server; a thin relay in front of it takes that prefix off and
puts it on, and changes nothing else. ``--own`` runs the suite's scenarios of the protocol itself
against our own servers: router and gateway.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node@22"
REFERENCE = "mcp==2.3.0"
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
SERVER = "ref"
OWN_SCENARIOS = (
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
)
"""What does not need the tools of the reference server."""
_NAMED = {"tools/call": ("name", f"{SERVER}__"), "prompts/get": ("name", f"{SERVER}:")}
_ADDRESS = f"evercontext://{SERVER}/"
_SCORE = re.compile(r"[✓✗] (\S+): (\d+) passed, (\d+) failed")


def install(folder: Path) -> None:
    """Install the suite and unpack the reference server, unless both are there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "@modelcontextprotocol" / "conformance").is_dir():
        (folder / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--no-audit", SUITE, NODE], cwd=folder, check=True)
    if not (folder / "everything-server").is_dir():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, "-d", folder, REFERENCE], check=True)
        with tarfile.open(next(folder.glob("mcp-*.tar.gz"))) as archive:
            inside = [m for m in archive.getmembers() if "/servers/everything-server/" in m.name]
            for member in inside:
                member.name = member.name.partition("/servers/")[2]
            archive.extractall(folder, inside, filter="data")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(argv: list[str], port: int, env: dict[str, str]) -> Iterator[str]:
    """Start a server, wait until it listens, and yield the address of its MCP endpoint."""
    process = subprocess.Popen(
        argv, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise SystemExit(f"{argv[0]} ended")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(30)


def run_suite(
    folder: Path, url: str, revision: str, scenario: str | None, quiet: bool = False
) -> dict[str, Any]:
    """Run the scenarios of a revision; return passed and failed checks by scenario."""
    place = folder / "node_modules"
    suite = place / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    some = ["--scenario", scenario] if scenario else ["--suite", "all"]
    argv = [place / "node" / "bin" / "node", suite, "server", "--url", url, *some]
    argv += ["--spec-version", revision]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False)
    if scenario and not quiet:
        print(done.stdout[-6000:], done.stderr[-2000:])
    return {name: (int(p), int(f)) for name, p, f in _SCORE.findall(done.stdout + done.stderr)}


# A relay that takes the server's prefix off names, and puts it on.


def prefixed(message: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return a client's message as the router names things, and the name in it."""
    params = message.get("params")
    method = message.get("method", "")
    if not isinstance(params, dict):
        return message, None
    if method in _NAMED:
        field, prefix = _NAMED[method]
        params[field] = name = f"{prefix}{params.get(field)}"
        return message, name
    if method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        params["uri"] = f"{_ADDRESS}{params.get('uri')}"
        return message, params["uri"]
    if method == "subscriptions/listen":
        wishes = params.get("notifications", {})
        uris = wishes.get("resourceSubscriptions")
        if isinstance(uris, list):
            wishes["resourceSubscriptions"] = [f"{_ADDRESS}{uri}" for uri in uris]
    if method == "completion/complete" and isinstance(reference := params.get("ref"), dict):
        if "name" in reference:
            reference["name"] = f"{SERVER}:{reference['name']}"
        if "uri" in reference:
            reference["uri"] = f"{_ADDRESS}{reference['uri']}"
    return message, None


def stripped(data: bytes) -> bytes:
    """Return what the router sent, with the names of the server alone."""
    for prefix in (f"{SERVER}__", f"{SERVER}:", _ADDRESS):
        data = data.replace(f'"{prefix}'.encode(), b'"')
    return data


class Relay:
    """Stands before the router, for the suite, which knows the reference server's own names."""

    def __init__(self, url: str, port: int, headers: dict[str, str]) -> None:
        self._url, self._headers = url, headers
        self._hosts = {f"{host}:{port}": url.split("/")[2] for host in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request on, and its response back as it comes."""
        import httpx2

        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = self._renamed({k.decode(): v.decode("latin-1") for k, v in scope["headers"]})
        if body[:1] == b"{":
            try:
                message, name = prefixed(json.loads(body))
                body = json.dumps(message).encode()
            except ValueError:
                name = None
            if name and "mcp-name" in headers and headers["mcp-name"]:
                headers["mcp-name"] = self._named(name, headers["mcp-name"])
        timeout = httpx2.Timeout(None)
        async with (
            httpx2.AsyncClient(timeout=timeout) as client,
            client.stream(scope["method"], self._url, content=body, headers=headers) as answer,
        ):
            dropped = (b"content-length", b"transfer-encoding", b"connection")
            kept = [(k.lower(), v) for k, v in answer.headers.raw if k.lower() not in dropped]
            start = {"type": "http.response.start", "status": answer.status_code}
            await send({**start, "headers": kept})
            watching = asyncio.create_task(self._until_gone(receive))
            passing = asyncio.create_task(self._pass(answer, send))
            await asyncio.wait({watching, passing}, return_when=asyncio.FIRST_COMPLETED)
            for task in (watching, passing):
                task.cancel()
            await asyncio.gather(watching, passing, return_exceptions=True)
        await send({"type": "http.response.body", "body": b""})

    async def _pass(self, answer: Any, send: Any) -> None:
        if "event-stream" not in answer.headers.get("content-type", ""):
            data = stripped(await answer.aread())
            await send({"type": "http.response.body", "body": data, "more_body": True})
            return
        rest = b""
        async for part in answer.aiter_raw():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                data = stripped(line) + b"\n"
                await send({"type": "http.response.body", "body": data, "more_body": True})

    async def _until_gone(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    def _renamed(self, headers: dict[str, str]) -> dict[str, str]:
        headers = {k: v for k, v in headers.items() if k not in ("content-length", "connection")}
        headers["accept-encoding"] = "identity"
        host = headers.get("host", "")
        headers["host"] = self._hosts.get(host, host)
        origin = headers.get("origin", "")
        for ours, theirs in self._hosts.items():
            origin = origin.replace(f"//{ours}", f"//{theirs}")
        return {**headers, **({"origin": origin} if origin else {}), **self._headers}

    def _named(self, name: str, header: str) -> str:
        """Return the header of a name; one that said something else still does."""
        bare = name.removeprefix(f"{SERVER}__").removeprefix(f"{SERVER}:").removeprefix(_ADDRESS)
        return header.replace(bare, name) if bare in header else header


def serve_relay(url: str, port: int, headers: dict[str, str]) -> None:
    """Serve the relay until killed."""
    import uvicorn

    uvicorn.run(Relay(url, port, headers), host="127.0.0.1", port=port, log_level="error")


@contextmanager
def behind_router(reference: str) -> Iterator[str]:
    """Yield the address of a relay before a router that has the reference server alone."""
    with tempfile.TemporaryDirectory() as folder, router(Path(folder), reference) as url:
        port = free_port()
        place = str(Path(__file__).resolve())
        argv = [sys.executable, place, "--relay", url, str(port)]
        with started(argv, port, {}) as address:
            yield address


@contextmanager
def router(folder: Path, reference: str) -> Iterator[str]:
    """Yield the address of a router that lists the tools of the reference server directly."""
    port = free_port()
    env = {"EC_HOME": str(folder / "home"), "EC_ROUTER_PORT": str(port), "EC_ROUTER_OPEN": "1"}
    program = str(Path(sys.executable).parent / "evercontext")
    (folder / "project").mkdir()
    for argv in (
        ["projects", "create", "all", "--optimization", "null"],
        ["servers", "add", SERVER, "--url", reference],
        ["servers", "disable", "evercontext"],
    ):
        subprocess.run(
            [program, *argv],
            env={**os.environ, **env},
            cwd=folder / "project",
            check=True,
            stdout=subprocess.DEVNULL,
        )
    argv = [program, "serve", "--only", "router", "--root", str(folder / "project")]
    with started(argv, port, env) as url:
        yield url


def compare(folder: Path, revisions: tuple[str, ...], scenario: str | None) -> None:
    """Print the scores alone and behind the router."""
    env = {"PYTHONPATH": str(folder / "everything-server")}
    port = free_port()
    argv = [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
    with started(argv, port, env) as reference, behind_router(reference) as relayed:
        for revision in revisions:
            alone = {} if scenario else run_suite(folder, reference, revision, scenario)
            behind = run_suite(folder, relayed, revision, scenario)
            report(revision, alone, behind)


def own(folder: Path, revisions: tuple[str, ...]) -> None:
    """Print the scores of our gateway and our router by themselves."""
    program = str(Path(sys.executable).parent / "evercontext")
    for name, variable in (("gateway", "EC_PORT"), ("router", "EC_ROUTER_PORT")):
        with tempfile.TemporaryDirectory() as place:
            port = free_port()
            env = {"EC_HOME": f"{place}/home", variable: str(port), "EC_ROUTER_OPEN": "1"}
            argv = [program, "serve", "--only", name, "--root", place]
            with started(argv, port, env) as url:
                for revision in revisions:
                    scores: dict[str, tuple[int, int]] = {}
                    for scenario in OWN_SCENARIOS:
                        scores |= run_suite(folder, url, revision, scenario, quiet=True)
                    passed = sum(p for p, _ in scores.values())
                    total = sum(map(sum, scores.values()))
                    failed = [each for each, (_, bad) in scores.items() if bad]
                    print(f"{revision}  our {name:8} {passed}/{total}  {' '.join(failed)}")


def report(revision: str, alone: dict[str, Any], behind: dict[str, Any]) -> None:
    """Print scenarios that differ, and the totals."""
    print(f"\n{revision}                              alone     behind the router")
    for name in sorted({*alone, *behind}):
        a, b = alone.get(name, (0, 0)), behind.get(name, (0, 0))
        if a != b or a[1] or b[1]:
            print(f"  {name:40} {a[0]:3}/{sum(a):<3}   {b[0]:3}/{sum(b):<3}")
    totals = [(sum(p for p, _ in s.values()), sum(map(sum, s.values()))) for s in (alone, behind)]
    print(f"  {'total':40} {totals[0][0]:3}/{totals[0][1]:<3}   {totals[1][0]:3}/{totals[1][1]:<3}")


def main() -> None:
    """Run what the command line says."""
    if sys.argv[1:2] == ["--relay"]:
        serve_relay(sys.argv[2], int(sys.argv[3]), {"x-evercontext-project": "all"})
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--revision", action="append", choices=REVISIONS)
    parser.add_argument("--scenario")
    parser.add_argument("--own", action="store_true", help="our own servers alone")
    options = parser.parse_args()
    install(options.folder)
    if options.own:
        own(options.folder.resolve(), tuple(options.revision or REVISIONS))
        return
    compare(options.folder.resolve(), tuple(options.revision or REVISIONS), options.scenario)


if __name__ == "__main__":
    main()
