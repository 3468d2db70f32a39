"""What the relay is measured against: a server that echoes, and a relay that does nothing else.

    python benchmarks/relay_peers.py echo PORT          # an MCP server over Streamable HTTP
    python benchmarks/relay_peers.py relay PORT TARGET  # bytes in, bytes out, pooled connections

Both are plain ASGI under uvicorn, without a framework: nothing in Python is much cheaper.
"""

from __future__ import annotations

import asyncio
import json
import sys

import uvicorn

TOOL = {
    "name": "echo",
    "description": "Say the text again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "echo", "version": "1"},
}
JSON = (b"content-type", b"application/json")


async def body_of(receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def answer(send, status: int, body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length]})
    await send({"type": "http.response.body", "body": body})


async def echo(scope, receive, send) -> None:
    if scope["method"] != "POST":
        await answer(send, 405, b"{}")
        return
    message = json.loads(await body_of(receive))
    if "id" not in message:
        await answer(send, 202, b"")
        return
    method, params = message["method"], message.get("params", {})
    told = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        told["result"] = {**HELLO, "protocolVersion": params["protocolVersion"]}
    elif method == "tools/list":
        told["result"] = {"tools": [TOOL]}
    elif method == "tools/call":
        text = params.get("arguments", {}).get("text", "")
        told["result"] = {"content": [{"type": "text", "text": text}], "isError": False}
    else:
        told["error"] = {"code": -32601, "message": "no such method"}
    await answer(send, 200, json.dumps(told).encode())


class Relay:
    """Passes every body on over a connection that is kept."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __call__(self, scope, receive, send) -> None:
        body = await body_of(receive)
        link = self._idle.pop() if self._idle else None
        reader, writer = link or await asyncio.open_connection("127.0.0.1", self._target)
        head = f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{self._target}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        size = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        told = await reader.readexactly(size)
        self._idle.append((reader, writer))
        await answer(send, 200, told)


def main() -> None:
    kind, port = sys.argv[1], int(sys.argv[2])
    app = echo if kind == "echo" else Relay(int(sys.argv[3]))
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        http="httptools",
        loop="asyncio",
        lifespan="off",
        log_level="error",
        access_log=False,
    )


if __name__ == "__main__":
    main()
