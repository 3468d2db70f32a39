"""Play the model APIs of vendors on loopback: a scripted reply per request, then plain text.

One server speaks OpenAI's Responses and Chat Completions, Anthropic's Messages and Gemini's
generateContent. A reply is ``{"text": …}``, ``{"call": name, "arguments": {…}}``, a raw item
``{"raw": {…}}``, or several in one: ``{"both": [...]}``. The name of a call that begins with ``*``
is a pattern for the tools that are offered: clients put their own prefix before ours.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = dict[str, Any]
_NUMBERS = itertools.count(1)
"""Of calls: a client takes two calls of one id for the same."""
_EVENTS = "text/event-stream"
_JSON = "application/json"


def call(tool: str, /, **arguments: Any) -> Reply:
    """Return a reply that calls a tool."""
    return {"call": tool, "arguments": arguments}


def text(words: str) -> Reply:
    """Return a reply that is an answer."""
    return {"text": words}


class VendorApi:
    """The server; ``script`` holds the replies, ``bodies`` what was sent to it."""

    def __init__(self, *script: Reply, only_with_tools: bool = False) -> None:
        """``only_with_tools``: calls wait for a request that offers tools.

        Clients ask for titles and summaries in between, without tools.
        """
        self.script: list[Reply] = list(script)
        self.failure: tuple[int, Any] | None = None
        self.bodies: list[str] = []
        self.paths: list[str] = []
        self.offered: set[str] = set()
        self._only_with_tools = only_with_tools
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> VendorApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def said(self) -> list[str]:
        """What was sent to it, with every letter written as itself."""
        return [json.dumps(_object(body.encode()), ensure_ascii=False) for body in self.bodies]

    @property
    def pictures(self) -> int:
        """How many pictures were sent to it as pictures, not as letters inside of a text."""
        values = (each for body in self.bodies for each in _strings(_object(body.encode())))
        return sum(
            each.removeprefix("data:image/png;base64,").startswith("iVBOR") for each in values
        )

    def answer(self, path: str, raw: bytes) -> tuple[int, bytes, str]:
        """Return status, body and content type for one request."""
        with self._lock:
            self.paths.append(path)
            self.bodies.append(raw.decode("utf-8", "replace"))
            request = _object(raw)
            tools = set(_tool_names(request))
            self.offered |= tools
            if self.failure is not None:
                status, body = self.failure
                return status, json.dumps(body).encode(), _JSON
            if path.partition("?")[0].endswith(("count_tokens", ":countTokens")):
                return 200, b'{"input_tokens": 10, "totalTokens": 10}', _JSON
            for ending, speak in _PROTOCOLS.items():
                if path.partition("?")[0].endswith(ending):
                    return 200, *speak(self._next(tools), request, "alt=sse" in path)
            return 404, b"{}", _JSON

    def _next(self, tools: set[str]) -> list[Reply]:
        if not self.script:
            return [{"text": "done"}]
        if self._only_with_tools and not tools and "text" not in self.script[0]:
            return [{"text": "A title"}]
        step = self.script.pop(0)
        return [_resolved(part, tools) for part in step.get("both", [step])]


def _resolved(step: Reply, tools: set[str]) -> Reply:
    name = str(step.get("call", ""))
    if not name.startswith("*"):
        return step
    matching = (tool for tool in sorted(tools) if fnmatchcase(tool, name))
    return {**step, "call": next(matching, name.rpartition("*")[2])}


def _handler(api: VendorApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def do_GET(self) -> None:
            listed = {"object": "list", "data": []} if "/models" in self.path else {}
            self._send(200 if listed else 404, json.dumps(listed).encode(), _JSON)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            self._send(*api.answer(self.path, raw))

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _tool_names(request: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a request offers, in every vendor's shape.

    A tool in a namespace, as newer versions of Codex have them, is ``namespace.name``.
    """
    for tool in request.get("tools") or ():
        space = f"{tool.get('name')}." if tool.get("type") == "namespace" else ""
        for part in tool.get("functionDeclarations") or tool.get("tools") or [tool]:
            function = part.get("function")
            about = function if isinstance(function, dict) else part
            yield space + str(about.get("name") or about.get("type"))


def _responses(steps: list[Reply], request: dict[str, Any], _: bool) -> tuple[bytes, str]:
    items = [_codex_item(step) for step in steps]
    counts = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    usage = {**counts, "input_tokens_details": {"cached_tokens": 4}}
    sent: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    sent += [{"type": "response.output_item.done", "item": item} for item in items]
    sent.append({"type": "response.completed", "response": {"id": "r", "usage": usage}})
    return _named_events(sent), _EVENTS


def _codex_item(step: Reply) -> dict[str, Any]:
    if "raw" in step:
        return dict(step["raw"])
    if "text" in step:
        content = [{"type": "output_text", "text": step["text"]}]
        return {"type": "message", "id": "m", "role": "assistant", "content": content}
    name = f"c{next(_NUMBERS)}"
    arguments = json.dumps(step["arguments"])
    space, _, tool = step["call"].rpartition(".")
    item = {"type": "function_call", "id": name, "call_id": name, "name": tool}
    return {**item, **({"namespace": space} if space else {}), "arguments": arguments}


def _gemini(steps: list[Reply], request: dict[str, Any], streamed: bool) -> tuple[bytes, str]:
    content = {"role": "model", "parts": [_gemini_part(step) for step in steps]}
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 13}
    candidates = [{"content": content, "finishReason": "STOP", "index": 0}]
    body = {"candidates": candidates, "usageMetadata": counts, "modelVersion": "gemini-x"}
    written = json.dumps(body)
    if streamed:
        return f"data: {written}\r\n\r\n".encode(), _EVENTS
    return written.encode(), _JSON


def _gemini_part(step: Reply) -> dict[str, Any]:
    if "raw" in step:
        return dict(step["raw"])
    if "text" in step:
        return {"text": step["text"]}
    return {"functionCall": {"name": step["call"], "args": step["arguments"]}}


def _messages(steps: list[Reply], request: dict[str, Any], _: bool) -> tuple[bytes, str]:
    blocks = [_claude_block(step) for step in steps]
    called = any(block["type"] == "tool_use" for block in blocks)
    start = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "claude-x"),
        "stop_sequence": None,
    }
    usage = {"input_tokens": 10, "output_tokens": 3}
    stop = "tool_use" if called else "end_turn"
    if not request.get("stream"):
        complete = {**start, "content": blocks, "stop_reason": stop, "usage": usage}
        return json.dumps(complete).encode(), _JSON
    begun = {**start, "content": [], "stop_reason": None, "usage": usage}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks):
        sent += _claude_events(index, block)
    delta = {"stop_reason": stop, "stop_sequence": None}
    sent += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}]
    return _named_events([*sent, {"type": "message_stop"}]), _EVENTS


def _claude_block(step: Reply) -> dict[str, Any]:
    if "raw" in step:
        return dict(step["raw"])
    if "text" in step:
        return {"type": "text", "text": step["text"]}
    about = {"id": f"toolu_{next(_NUMBERS)}", "name": step["call"], "input": step["arguments"]}
    return {"type": "tool_use", **about}


def _claude_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "tool_use":
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block.get("text", "")}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def _named_events(sent: list[dict[str, Any]]) -> bytes:
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in sent)
    return "".join(lines).encode()


def _chat(steps: list[Reply], request: dict[str, Any], _: bool) -> tuple[bytes, str]:
    calls = [_chat_call(step, number) for number, step in enumerate(steps) if "call" in step]
    words = "".join(step.get("text", "") for step in steps)
    message = {"role": "assistant", "content": words or None}
    if calls:
        message["tool_calls"] = calls  # type: ignore[assignment]
    finish = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    about = {"id": "chat_1", "created": 1, "model": request.get("model", "x")}
    if not request.get("stream"):
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        body = {**about, "object": "chat.completion", "choices": choices, "usage": usage}
        return json.dumps(body).encode(), _JSON
    first = {"index": 0, "delta": message, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": finish}
    chunks: list[dict[str, Any]] = [{"choices": [first]}, {"choices": [last]}]
    chunks.append({"choices": [], "usage": usage})
    lines = [json.dumps({**about, "object": "chat.completion.chunk", **part}) for part in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(), _EVENTS


def _chat_call(step: Reply, number: int) -> dict[str, Any]:
    function = {"name": step["call"], "arguments": json.dumps(step["arguments"])}
    about = {"index": number, "id": f"call_{next(_NUMBERS)}", "type": "function"}
    return {**about, "function": function}


_PROTOCOLS: dict[str, Callable[[list[Reply], dict[str, Any], bool], tuple[bytes, str]]] = {
    "/responses": _responses,
    "/chat/completions": _chat,
    "/messages": _messages,
    "enerateContent": _gemini,
}
