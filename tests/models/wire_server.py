"""A loopback HTTP server that answers from a list and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """One response. ``pieces`` go out one by one; ``cut`` drops the connection after them."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    stall: bool = False


@dataclass
class WireServer:
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def will(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        self.asked.append(Asked(method, path, headers, json.loads(raw) if raw else None))
        if not self.answers:
            raise ConnectionError("the test gave no answer for this request")
        answer = self.answers.pop(0)
        given = {"content-type": "application/json", **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} X", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in given.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for piece in answer.pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if answer.stall:
            await self.done.wait()
        if answer.cut:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def wire_server() -> AsyncIterator[WireServer]:
    state = WireServer()
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    async with server:
        yield state
        state.done.set()


def sse(*events: Any, event_names: bool = False, done: bool = False) -> list[bytes]:
    """Server-sent events as vendors write them, one piece each."""
    pieces = []
    for event in events:
        name = f"event: {event['type']}\n" if event_names else ""
        pieces.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
    return [*pieces, b"data: [DONE]\n\n"] if done else pieces


def ndjson(*lines: Any) -> list[bytes]:
    """Newline-delimited JSON, cut in the middle of lines as networks do."""
    raw = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    return [raw[start : start + 50] for start in range(0, len(raw), 50)]


def error(status: int, body: Any, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([json.dumps(body).encode()], status, names)
