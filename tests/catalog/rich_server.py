"""An MCP server over stdio that uses everything a server may say. Run as a program."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
CONTENT: list[dict[str, Any]] = [
    {"type": "text", "text": "what I saw: 画像", "annotations": {"audience": ["user"]}},
    {"type": "image", "data": IMAGE, "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "memo://today", "name": "today", "title": "Today"},
    {"type": "resource", "resource": {"uri": "memo://note", "text": "inside", "mimeType": "a/b"}},
]
SHOWN: dict[str, Any] = {
    "content": CONTENT,
    "structuredContent": {"seen": 5, "more": [1, 2.5, None]},
    "_meta": {"example.org/kept": True},
}
DEFINITION: dict[str, Any] = {
    "name": "show",
    "title": "Show everything",
    "description": "Show every kind of content.",
    "inputSchema": {"type": "object", "properties": {}},
    "outputSchema": {"type": "object", "properties": {"seen": {"type": "integer"}}},
    "annotations": {"readOnlyHint": True, "title": "Show"},
    "icons": [{"src": "https://example.org/icon.png"}],
    "_meta": {"example.org/about": "show"},
}
MEMOS = {"memo://today": "buy milk", "memo://note": "inside"}
NAMES = ("repeat", "wrong", "log", "ask", "long", "update")
TOOLS = [
    DEFINITION,
    *({"name": n, "description": f"Do {n}.", "inputSchema": {"type": "object"}} for n in NAMES),
]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "logging": {},
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def text_of(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def call(id: Any, name: str) -> None:
    if name == "show":
        say({"id": id, "result": SHOWN})
    elif name == "repeat":
        say({"id": id, "result": text_of('{"a": 1}', structuredContent={"a": 1})})
    elif name == "wrong":
        error = {"code": -32042, "message": "no such 町", "data": {"tried": ["a"]}}
        say({"id": id, "error": error})
    elif name == "long":
        structured = {"rows": ["x" * 1000] * 300}
        say({"id": id, "result": text_of("y" * 250_000, structuredContent=structured)})
    elif name == "log":
        for level in ("debug", "error"):
            params = {"level": level, "logger": "rich", "data": {"at": level}}
            say({"method": "notifications/message", "params": params})
        say({"id": id, "result": text_of("logged")})
    elif name == "update":
        uri = {"uri": "memo://today"}
        say({"method": "notifications/resources/updated", "params": uri})
        say({"id": id, "result": text_of("updated")})
    elif name == "ask":
        question = {"message": "Whose?", "requestedSchema": {"type": "object"}}
        say({"id": "q1", "method": "elicitation/create", "params": question})
        answer = json.loads(sys.stdin.readline())
        say({"id": id, "result": text_of(json.dumps(answer.get("result", answer.get("error"))))})


def main() -> None:
    if len(sys.argv) > 1:
        # Slow to start, until a file is there.
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.02)
    for line in sys.stdin:
        message = json.loads(line)
        method, id, params = message.get("method"), message.get("id"), message.get("params", {})
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES}
            say({"id": id, "result": {**result, "serverInfo": {"name": "rich", "version": "1"}}})
        elif method == "tools/list":
            say({"id": id, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            call(id, params["name"])
        elif method == "completion/complete":
            values = [
                params["ref"].get("name") or params["ref"]["uri"],
                params["argument"]["value"],
            ]
            say({"id": id, "result": {"completion": {"values": values, "hasMore": False}}})
        elif method == "prompts/list":
            say({"id": id, "result": {"prompts": [{"name": "greet"}]}})
        elif method == "resources/list":
            say({"id": id, "result": {"resources": [{"uri": "memo://today", "name": "today"}]}})
        elif method == "resources/read" and params["uri"] in MEMOS:
            text = {"uri": params["uri"], "text": MEMOS[params["uri"]]}
            say({"id": id, "result": {"contents": [text]}})
        elif id is not None:
            print(method, json.dumps(params), file=sys.stderr, flush=True)
            say({"id": id, "result": {}})


if __name__ == "__main__":
    main()
