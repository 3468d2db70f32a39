"""A visitor without a browser: cookies, the token of the page, and raw streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.server.console.world import World


def new_link(world: World) -> str:
    """A fresh link, made by the command as a person makes it."""
    made = subprocess.run(
        [sys.executable, "-m", "evercontext", "console", "--print"],
        env={**os.environ, "EC_HOME": str(world.home), "EC_APP_ROOT": str(world.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


@dataclass(slots=True)
class Message:
    """One server-sent event."""

    id: str = ""
    event: str = ""
    data: Any = field(default=None)


class Visit:
    """One client with its cookie."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.Client(base_url=url, timeout=60, verify=False)
        self.csrf = ""

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def enter(self, world: World) -> None:
        """Come in through a new link."""
        assert self.follow(new_link(world)).status_code == 303
        self.csrf = self.get("me")["csrf"]

    def follow(self, link: str) -> httpx2.Response:
        """Open a link as a browser does, which knows where names below localhost lead."""
        parts = urlsplit(link)
        self.client.headers["host"] = parts.netloc
        return self.client.get(f"{parts.path}?{parts.query}")

    def get(self, path: str, **query: Any) -> Any:
        """What a page would be told."""
        answer = self.client.get(f"/console/api/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """A change, as our own page makes it."""
        named = {"x-evercontext-csrf": self.csrf, **headers}
        return self.client.post(f"/console/api/{path}", json=body, headers=named)

    @contextmanager
    def stream(self, last: str = "", **query: str) -> Iterator[Iterator[Message]]:
        """Server-sent events, parsed."""
        headers = {"last-event-id": last} if last else {}
        with self.client.stream(
            "GET", "/console/api/stream", params=query, headers=headers
        ) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/event-stream"
            yield _messages(answer.iter_lines())


def _messages(lines: Iterator[str]) -> Iterator[Message]:
    message = Message()
    for line in lines:
        name, _, value = line.partition(": ")
        if not line and message.event:
            yield message
            message = Message()
        elif name == "id":
            message.id = value
        elif name == "event":
            message.event = value
        elif name == "data":
            message.data = json.loads(value)
