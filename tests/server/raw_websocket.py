"""A WebSocket client made of sockets alone: every byte that it sends is written here (RFC 6455)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import struct
from typing import Any

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class RawClient:
    """One connection; what comes back is kept in the order in which it came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.told: list[dict[str, Any]] = []
        """Notifications of the server."""

    @classmethod
    async def open(cls, port: int) -> RawClient:
        """Upgrade an HTTP connection, and check what the server proves."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)).decode()
        assert head.startswith("HTTP/1.1 101 "), head
        proof = base64.b64encode(hashlib.sha1(f"{key}{_MAGIC}".encode()).digest()).decode()
        assert f"sec-websocket-accept: {proof}".lower() in head.lower()
        return cls(reader, writer)

    def frame(self, kind: int, payload: bytes) -> None:
        """Send one whole frame, masked as a client's must be."""
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 65_536:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        mask = os.urandom(4)
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self._writer.write(head + mask + body)

    def send(self, message: dict[str, Any]) -> None:
        """Send one JSON message."""
        self.frame(TEXT, json.dumps(message, ensure_ascii=False).encode())

    async def receive(self) -> tuple[int, bytes]:
        """The next frame: its kind and its payload; a server never masks."""
        first, second = await asyncio.wait_for(self._reader.readexactly(2), 60)
        assert first & 0x80, "an answer in one piece"
        assert not second & 0x80, "a server's frame is not masked"
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
        return first & 0x0F, await self._reader.readexactly(size)

    async def answer(self, id: object) -> dict[str, Any]:
        """The answer to a request; notifications on the way are kept."""
        while True:
            kind, payload = await self.receive()
            if kind == PING:
                self.frame(PONG, payload)
                continue
            assert kind == TEXT, (kind, payload)
            message: dict[str, Any] = json.loads(payload)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == id and "method" not in message:
                return message
            self.told.append(message)

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, id: object = 1
    ) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return await self.answer(id)

    async def hello(self) -> dict[str, Any]:
        """The handshake of the protocol: initialize, then the notification that gets no answer."""
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answer = await self.ask("initialize", params, "init")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def close(self, code: int = 1000) -> int:
        """Say goodbye and return the code with which the server confirms it."""
        self.frame(CLOSE, struct.pack("!H", code))
        while True:
            kind, payload = await self.receive()
            if kind == CLOSE:
                break
        assert await asyncio.wait_for(self._reader.read(), 30) == b"", "the server hangs up first"
        self._writer.close()
        await self._writer.wait_closed()
        return int(struct.unpack("!H", payload[:2])[0])

    def drop(self) -> None:
        """Be gone without a word."""
        self._writer.transport.abort()
