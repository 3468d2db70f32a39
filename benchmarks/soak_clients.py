"""The clients of the soak: each remembers what it was promised, and checks what it reads."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

PATIENCE = 30.0
_LOST = (ConnectionError, EOFError, asyncio.IncompleteReadError, OSError)
REFUSALS = frozenset({400, 403, 404, 409, 413, 415, 422, 507})
"""Answers that promise that nothing was changed."""
DOCUMENT = "# Design\n\n" + "A plain sentence about one part of it. " * 40 + "\n\n## Use\n\n- it\n"


@dataclass
class Ledger:
    """What was acknowledged, and what a reader may therefore see."""

    states: dict[str, set[str | None]] = field(default_factory=dict)
    """Path → contents it may have; one after every acknowledgement."""
    acknowledged_writes: list[tuple[str, float]] = field(default_factory=list)
    """Trace id, and when the request was sent."""
    memories: dict[str, float] = field(default_factory=dict)
    """Text → when it was sent; acknowledged ones only."""
    undone: int = 0
    wrong: list[str] = field(default_factory=list)

    def state(self, path: str) -> set[str | None]:
        """The contents that this file may have now."""
        return self.states.setdefault(path, {None})

    def check(self, path: str, content: str | None) -> None:
        """Note a content that nobody was promised."""
        if content not in self.state(path):
            seen = "nothing" if content is None else repr(content[:60])
            self.wrong.append(f"{path}: {seen}, not one of {len(self.state(path))} possible")


@dataclass
class Tally:
    """Requests and errors by kind, and how long answers took."""

    requests: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    samples: dict[str, str] = field(default_factory=dict)

    def error(self, kind: str, example: object = "") -> None:
        """Count an error, and keep its first text."""
        self.errors[kind] += 1
        self.samples.setdefault(kind, str(example)[:200])


@dataclass
class Target:
    """Where the servers are now; they move with every restart."""

    port: int = 0
    evaluator_port: int = 0
    console_host: str = ""
    cookie: str = ""
    csrf: str = ""
    ready: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class World:
    """What every client shares."""

    seed: int
    target: Target
    ledger: Ledger
    tally: Tally
    ending: asyncio.Event
    pause: float
    """Seconds between two requests of a client, on average."""

    def chance(self, name: str) -> random.Random:
        """The dice of one client: the same for the same seed."""
        return random.Random(f"{self.seed}-{name}")


class Link:
    """One HTTP connection that is opened again whenever it is lost."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._port = 0

    async def ask(
        self, kind: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        """Send one request; status 0 where no whole answer came."""
        tally = self._world.tally
        tally.requests[kind] += 1
        started = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                status, head, data = await self._exchange(path, body, headers or {})
        except TimeoutError:
            tally.error("no answer in time")
        except _LOST:
            tally.error("connection lost")
        else:
            tally.seconds[kind].append(time.monotonic() - started)
            answer = json.loads(data) if data else None
            # That a file is not there is often the right answer, and is checked as such.
            if status >= 400 and status != 404:
                code = answer.get("error", {}).get("code") if isinstance(answer, dict) else ""
                tally.error(f"{status} {code}", data[:200])
            return status, head, answer
        self.close()
        return 0, {}, None

    async def _exchange(
        self, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if self._streams is None or self._port != self._world.target.port:
            self.close()
            self._port = self._world.target.port
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        reader, writer = self._streams
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1"]
        named = {"Host": f"127.0.0.1:{self._port}", "Content-Length": str(len(data)), **headers}
        if body is not None:
            named["Content-Type"] = "application/json"
        lines += [f"{name}: {value}" for name, value in named.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if ": " in line)
        fields = {name.lower(): value for name, value in pairs}
        answer = await reader.readexactly(int(fields.get("content-length", "0")))
        if fields.get("connection") == "close":
            self.close()
        return int(head[0].split()[1]), fields, answer

    def close(self) -> None:
        """Forget the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


Action = Callable[[], Awaitable[None]]


async def until_the_end(world: World, chance: random.Random, actions: dict[str, Action]) -> None:
    """Do one thing after another, with pauses."""
    names = list(actions)
    while not world.ending.is_set():
        if not world.target.ready.is_set():
            await asyncio.sleep(0.2)
            continue
        await actions[chance.choice(names)]()
        with suppress(TimeoutError):
            pause = chance.uniform(0.2, 1.8) * world.pause
            await asyncio.wait_for(world.ending.wait(), pause)


class FileClient:
    """Reads, writes, searches and takes back, in files of its own."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self._chance = world.chance(name)
        self._link = Link(world)
        self._number = 0

    async def live(self) -> None:
        """Work until the soak ends."""
        actions = {
            "write": self._write,
            "write again": self._write,
            "read": self._read,
            "read again": self._read,
            "search": self._search,
            "list": self._list,
            "delete": self._delete,
            "undo": self._write_and_undo,
        }
        await until_the_end(self._world, self._chance, actions)
        self._link.close()

    async def call(
        self, tool: str, arguments: dict[str, Any], trace: str
    ) -> tuple[int, dict[str, Any]]:
        """Call a tool; status 0 for no answer."""
        status, _, answer = await self._link.ask(
            f"REST {tool}", f"/{tool}", arguments, {"X-Trace-Id": trace}
        )
        return status, answer if isinstance(answer, dict) else {}

    def _path(self) -> str:
        return f"{self._name}/{self._chance.randrange(4)}.txt"

    def _content(self, path: str) -> str:
        self._number += 1
        line = f"{path} number {self._number} of seed {self._world.seed}\n"
        return line * self._chance.choice((1, 20, 200))

    async def _change(self, path: str, tool: str, arguments: Any, new: str | None) -> str | None:
        """Change a file; return its trace if that was acknowledged."""
        ledger, trace = self._world.ledger, str(uuid.UUID(int=self._chance.getrandbits(128)))
        before, sent = set(ledger.state(path)), time.time()
        ledger.states[path] = before | {new}
        status, _ = await self.call(tool, arguments, trace)
        if status == 200:
            ledger.states[path] = {new}
            ledger.acknowledged_writes.append((trace, sent))
            return trace
        if status in REFUSALS:
            ledger.states[path] = before
        return None

    async def _write(self) -> str | None:
        path = self._path()
        content = self._content(path)
        arguments = {"path": path, "content": content, "mode": "overwrite"}
        return await self._change(path, "write_file", arguments, content)

    async def _delete(self) -> None:
        path = self._path()
        await self._change(path, "delete_file", {"path": path}, None)

    async def _write_and_undo(self) -> None:
        path, target, ledger = self._path(), self._world.target, self._world.ledger
        before = set(ledger.state(path))
        content = self._content(path)
        arguments = {"path": path, "content": content, "mode": "overwrite"}
        trace = await self._change(path, "write_file", arguments, content)
        if trace is None or not target.cookie:
            return
        ledger.states[path] = before | {content}
        headers = {
            "Host": target.console_host,
            "Cookie": target.cookie,
            "X-EverContext-CSRF": target.csrf,
        }
        status, _, answer = await self._link.ask(
            "console undo", f"/console/api/runs/{trace}/undo", {"dry_run": False}, headers
        )
        if status != 200:
            return
        taken = json.dumps([answer.get("restored"), answer.get("removed")])
        ledger.states[path] = before if path in taken else {content}
        ledger.undone += path in taken

    async def _read(self) -> None:
        path, trace = self._path(), str(uuid.uuid4())
        status, answer = await self.call("read_file", {"path": path}, trace)
        if status == 200:
            self._world.ledger.check(path, answer.get("content"))
        elif status == 404:
            self._world.ledger.check(path, None)

    async def _search(self) -> None:
        arguments = {"directory": self._name, "keyword": "number 1 "}
        await self.call("search_files", arguments, str(uuid.uuid4()))

    async def _list(self) -> None:
        await self.call("list_files", {"path": "."}, str(uuid.uuid4()))


class McpClient(FileClient):
    """The same over MCP, and memories."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._session = ""
        self._id = 0

    async def live(self) -> None:
        """Work until the soak ends."""
        actions = {
            "write": self._write,
            "read": self._read,
            "search": self._search,
            "remember": self._remember,
            "remember again": self._remember,
            "recall": self._recall,
        }
        await until_the_end(self._world, self._chance, actions)
        self._link.close()

    async def _rpc(self, kind: str, method: str, parameters: Any, **headers: str) -> Any:
        self._id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if not method.startswith("notifications/"):
            message["id"] = self._id
        named = {"Accept": "application/json, text/event-stream", **headers}
        if self._session:
            named["Mcp-Session-Id"] = self._session
        return await self._link.ask(kind, "/mcp", message, named)

    async def _greet(self) -> bool:
        self._session = ""
        info = {"name": "soak", "version": "1"}
        parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        status, head, _ = await self._rpc("MCP initialize", "initialize", parameters)
        self._session = head.get("mcp-session-id", "")
        if status != 200 or not self._session:
            return False
        await self._rpc("MCP initialized", "notifications/initialized", {})
        return True

    async def call(
        self, tool: str, arguments: dict[str, Any], trace: str
    ) -> tuple[int, dict[str, Any]]:
        """Call a tool; an error of the tool counts as the status its text names, else 503."""
        if not self._session and not await self._greet():
            return 0, {}
        parameters = {"name": tool, "arguments": arguments}
        status, _, answer = await self._rpc(
            f"MCP {tool}", "tools/call", parameters, **{"X-Trace-Id": trace}
        )
        if status != 200:
            if status:
                self._session = ""  # the server was started anew and does not know it
            return 0, {}
        result = answer.get("result", {})
        if "error" in answer or result.get("isError"):
            text = json.dumps(answer.get("error") or result.get("content"))
            missing = "no such file" in text
            if not missing:
                self._world.tally.error("MCP error", text)
            return (404 if missing else 503), {}
        data = result.get("structuredContent") or {}
        text = "".join(part.get("text", "") for part in result.get("content", []))
        return 200, {"content": text, **data}

    async def _remember(self) -> None:
        self._number += 1
        text = f"Decision {self._number} of {self._name}: value {self._chance.getrandbits(40)}."
        sent = time.time()
        status, _ = await self.call("remember", {"content": text}, str(uuid.uuid4()))
        if status == 200:
            self._world.ledger.memories[text] = sent

    async def _recall(self) -> None:
        query = f"Decision {self._number} of {self._name}"
        await self.call("recall", {"query": query, "limit": 5}, str(uuid.uuid4()))


class EvaluatorClient:
    """Judges a document over WebSocket, again and again."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._chance = world, world.chance(name)

    async def live(self) -> None:
        """Work until the soak ends."""
        world = self._world
        while not world.ending.is_set():
            if not world.target.ready.is_set():
                await asyncio.sleep(0.2)
                continue
            try:
                await self._visit()
            except (*_LOST, WebSocketException):
                world.tally.error("connection lost")
            except TimeoutError:
                world.tally.error("no answer in time")
            await asyncio.sleep(world.pause)

    async def _visit(self) -> None:
        world = self._world
        url = f"ws://localhost:{world.target.evaluator_port}/mcp"
        async with connect(url, max_size=1 << 24, proxy=None) as link:
            info = {"name": "soak", "version": "1"}
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
            await self._ask(link, 0, "initialize", hello)
            await link.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            for number in range(1, 20):
                if world.ending.is_set():
                    return
                parameters = {"name": "evaluate_document", "arguments": {"content": DOCUMENT}}
                await self._ask(link, number, "tools/call", parameters)
                await asyncio.sleep(self._chance.uniform(2, 8) * world.pause)

    async def _ask(self, link: Any, number: int, method: str, parameters: Any) -> None:
        tally, started = self._world.tally, time.monotonic()
        tally.requests["evaluator"] += 1
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        await link.send(json.dumps(message))
        async with asyncio.timeout(120):
            while True:
                answer = json.loads(await link.recv())
                if answer.get("id") == number:
                    break
        tally.seconds["evaluator"].append(time.monotonic() - started)
        if "error" in answer:
            tally.error("evaluator error", answer["error"])


class ConsolePage:
    """An open page of the console: follows the live stream, counts what it is sent."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def live(self) -> None:
        """Follow the stream until the soak ends, coming back whenever it breaks."""
        world = self._world
        while not world.ending.is_set():
            if not world.target.cookie or not world.target.ready.is_set():
                await asyncio.sleep(0.2)
                continue
            try:
                await self._follow()
            except _LOST:
                world.tally.error("connection lost")
            await asyncio.sleep(world.pause)

    async def _follow(self) -> None:
        target, tally = self._world.target, self._world.tally
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        tally.requests["console stream"] += 1
        try:
            lines = [
                "GET /console/api/stream HTTP/1.1",
                f"Host: {target.console_host}",
                f"Cookie: {target.cookie}",
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            status = (await reader.readuntil(b"\r\n")).split()[1].decode()
            if status != "200":
                tally.error(f"{status} console stream", await reader.read(400))
                return
            while not self._world.ending.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        data = await reader.read(65_536)
                        if not data:
                            raise ConnectionError
                        tally.requests["console frames"] += data.count(b"\nevent: ")
        finally:
            writer.close()
