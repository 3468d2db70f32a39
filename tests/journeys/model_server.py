"""A model on loopback that speaks OpenAI's wire format and follows a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = str | list[dict[str, Any]]
"""What it answers: words, or calls as ``story.call`` makes them."""
Choose = Callable[[list[dict[str, Any]]], Step]
"""Answers by what it was sent."""


@dataclass
class ModelServer:
    """Answers one request after the other, and keeps what it was sent."""

    url: str = ""
    steps: list[Step | Choose] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Requests that offer tools."""
    plans: list[str] = field(default_factory=list)
    """Answers to requests that offer none."""
    besides: list[dict[str, Any]] = field(default_factory=list)
    """Such requests: for a plan, a summary."""

    @property
    def settings(self) -> dict[str, str]:
        """The environment in which the command asks this server."""
        return {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{self.url}/v1"}

    def will(self, *steps: Step | Choose) -> None:
        """Add to the script."""
        self.steps += steps

    def last_result(self, number: int = -1) -> str:
        """The newest message of a request."""
        return str(self.asked[number]["messages"][-1]["content"])

    def answer(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of the next answer."""
        if not body.get("tools"):
            self.besides.append(body)
            yield _chunk(body, {"content": self.plans.pop(0) if self.plans else "Nothing to add."})
            yield _chunk(body, {}, "stop")
            return
        self.asked.append(body)
        step = self.steps.pop(0) if self.steps else "The script is over."
        if callable(step):
            step = step(body["messages"])
        if isinstance(step, str):
            yield _chunk(body, {"content": step})
            yield _chunk(body, {}, "stop")
            return
        for index, one in enumerate(step):
            function = {
                "name": one["name"].replace(".", "__"),
                "arguments": json.dumps(one["arguments"], ensure_ascii=False),
            }
            call_id = f"call_{len(self.asked)}_{index}"
            made = {"index": index, "id": call_id, "type": "function", "function": function}
            yield _chunk(body, {"tool_calls": [made]})
        yield _chunk(body, {}, "tool_calls")


def _chunk(body: dict[str, Any], delta: dict[str, Any], end: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
    }


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Serve until the block ends."""
    model = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            lines = [f"data: {json.dumps(part)}\n\n" for part in model.answer(body)]
            data = "".join([*lines, "data: [DONE]\n\n"]).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked may have been killed
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    try:
        yield model
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
