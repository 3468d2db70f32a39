"""A server nearby that remembers what it was asked, and answers every POST as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    path: str
    body: Any
    headers: Mapping[str, str]


Answer = Callable[[Asked], dict[str, Any]]


class Listener(ThreadingHTTPServer):
    """Answers JSON with JSON."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = Asked(self.path, body, dict(self.headers.items()))
        self.server.asked.append(asked)
        sent = json.dumps(self.server.answer(asked)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def listening(answer: Answer) -> Iterator[Listener]:
    """Listen on a free port of this machine, and leave nothing behind."""
    server = Listener(answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
