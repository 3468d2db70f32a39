"""An OpenAI-compatible server on loopback that says its words when a test lets it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SlowModel:
    """Answers each request with the next reply; pieces after the first wait for ``go_on``."""

    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []
        self._pauses: list[threading.Event] = []
        self.url = ""

    def answer(self, *pieces: str, calls: tuple[tuple[str, dict[str, Any]], ...] = ()) -> None:
        """Add a reply; with several pieces it stops after the first until ``go_on``."""
        go = threading.Event()
        self._pauses.append(go)
        self.replies.append({"pieces": pieces, "calls": calls, "go": go})

    def go_on(self) -> None:
        """Let the rest of the newest reply that was begun come."""
        begun = len(self._pauses) - len(self.replies)
        self._pauses[begun - 1].set()

    def _chunks(self, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not wanted.get("tools") or not self.replies:
            # A summary of the session, or another request besides the turns.
            yield {"content": "A summary."}
            return
        reply = self.replies.pop(0)
        for at, piece in enumerate(reply["pieces"]):
            if at == 1:
                reply["go"].wait(60)
            yield {"content": piece}
        for at, (name, arguments) in enumerate(reply["calls"]):
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": at, "id": f"call_{at}", "type": "function", "function": function}
            yield {"tool_calls": [call]}

    @contextmanager
    def serving(self) -> Iterator[SlowModel]:
        """Serve on a free port until the block ends."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Be quiet."""

            def do_GET(self) -> None:
                self._send(json.dumps({"data": [{"id": "slow"}]}).encode(), "application/json")

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                wanted = json.loads(self.rfile.read(size))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                last = "stop"
                try:
                    for delta in model._chunks(wanted):
                        last = "tool_calls" if "tool_calls" in delta else last
                        self._event({"choices": [{"index": 0, "delta": delta}]})
                    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": last}]}
                    usage = {"prompt_tokens": 9000, "completion_tokens": 80}
                    self._event({**end, "usage": usage})
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    self.close_connection = True

            def _event(self, value: dict[str, Any]) -> None:
                line = {"id": "c", "object": "chat.completion.chunk", "model": "slow", **value}
                self.wfile.write(b"data: " + json.dumps(line).encode() + b"\n\n")
                self.wfile.flush()

            def _send(self, body: bytes, media: str) -> None:
                self.send_response(200)
                self.send_header("content-type", media)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield self
        finally:
            for pause in self._pauses:
                pause.set()
            server.shutdown()
            server.server_close()
