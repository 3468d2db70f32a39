"""Exchange messages with an editor over stdin and stdout, each checked first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from acp.stdio import stdio_streams

from evercontext.process.stdin import LONGEST_LINE

PARSE_ERROR = -32700
INVALID_REQUEST = -32600


class AcpStdio:
    """A transport of the ACP library that outlives what is no message, and bounds its size."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls) -> AcpStdio:
        """Take over stdin and stdout."""
        return cls(*await stdio_streams(limit=LONGEST_LINE))

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; ``None`` when the editor is gone. What is none is answered here."""
        while (line := await self._line()) != b"":
            try:
                message = _message(line)
            except ValueError as problem:
                code = PARSE_ERROR if isinstance(problem, json.JSONDecodeError) else INVALID_REQUEST
                text = "this is no JSON" if code == PARSE_ERROR else str(problem)
                await self.send({"jsonrpc": "2.0", "id": None, "error": _error(code, text)})
                continue
            if message is not None:
                return message
        return None

    async def close(self) -> None:
        """Write no more."""
        self._writer.close()

    async def _line(self) -> bytes | None:
        """The next line, empty at the end; ``None`` for one that is too long, which is dropped."""
        too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as end:
                return b"" if too_long else end.partial
            except asyncio.LimitOverrunError as over:
                await self._reader.readexactly(over.consumed)
                too_long = True
            else:
                return None if too_long else line


def _message(line: bytes | None) -> dict[str, Any] | None:
    """Read a message, ``None`` for an empty line; a ValueError says what is wrong with it."""
    if line is None:
        raise ValueError(f"a message is longer than {LONGEST_LINE // (1024 * 1024)} MiB")
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except RecursionError:
        raise ValueError("a message is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("a message is not UTF-8") from None
    if not isinstance(message, dict):
        raise ValueError("a message is one JSON object")
    if not isinstance(message.get("id"), str | int | None):
        raise ValueError("an id is a text or a whole number")
    if "error" in message and not isinstance(message["error"], dict):
        message["error"] = _error(INVALID_REQUEST, "an error of another shape")
    return message


def _error(code: int, text: str) -> dict[str, Any]:
    return {"code": code, "message": text}
