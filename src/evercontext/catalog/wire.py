"""JSON-RPC with a tool server that may do anything: hang, lie, flood or die.

Every wait has an end, every size a limit, and what was not asked for is counted and ignored.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evercontext.errors import ServerGone, ServerProblem, ServerTimeout

LONGEST_LINE = 4 * 1024 * 1024
LONGEST_WAIT = 600.0
"""Seconds after which progress no longer extends a call."""
METHOD_NOT_FOUND = -32601
Params = Mapping[str, Any]


@dataclass(slots=True)
class Oddities:
    """What a server sent that nobody could use."""

    unasked: int = 0
    """Answers with an id that waits for none: wrong, repeated or late."""
    broken: int = 0
    """Lines that are no JSON-RPC."""


class Wire(Protocol):
    """A connection to one server."""

    @property
    def oddities(self) -> Oddities:
        """What the server sent that nobody could use."""
        ...

    @property
    def open(self) -> bool:
        """False once the connection is lost."""
        ...

    async def request(self, method: str, params: Params, seconds: float) -> Any:
        """Ask and return the result; raise ``ServerProblem`` in time."""
        ...

    async def notify(self, method: str, params: Params) -> None:
        """Tell without asking."""
        ...

    async def close(self) -> None:
        """End the connection, and the server if it is ours."""
        ...


@dataclass(slots=True)
class Waiting:
    """A question that is not answered yet."""

    answer: asyncio.Future[Any]
    seconds: float
    deadline: float


Answer = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Exchange:
    """Which question waits for which answer, whatever carries the messages."""

    on_changed: Callable[[], None] = lambda: None
    """Called when the server says that its list of tools is another one."""
    oddities: Oddities = field(default_factory=Oddities)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def ask(self, method: str, params: Params, seconds: float) -> tuple[int, bytes, Waiting]:
        """Return the number, the message and the place where its answer will be."""
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        waiting = self.waiting[number] = Waiting(answer, seconds, time.monotonic() + seconds)
        given = {**params, "_meta": {**params.get("_meta", {}), "progressToken": number}}
        return number, encode({"id": number, "method": method, "params": given}), waiting

    async def wait(self, number: int, waiting: Waiting) -> Any:
        """Wait for an answer; progress gives it its time again."""
        last = time.monotonic() + max(LONGEST_WAIT, waiting.seconds)
        try:
            while not waiting.answer.done():
                left = min(waiting.deadline, last) - time.monotonic()
                if left <= 0:
                    raise ServerTimeout(f"no answer within {waiting.seconds:g} s")
                await asyncio.wait({waiting.answer}, timeout=left)
            return waiting.answer.result()
        finally:
            self.waiting.pop(number, None)
            if not waiting.answer.done():
                waiting.answer.cancel()

    def take(self, line: bytes) -> bytes | None:
        """Take one message; return what has to be said in reply to it, if anything."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.oddities.broken += 1
            return None
        if isinstance(message.get("method"), str):
            return self._asked(message)
        self._answered(message)
        return None

    def fail(self, problem: ServerProblem) -> None:
        """Give everybody who waits the bad news."""
        for waiting in self.waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(problem)

    def _answered(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        known = isinstance(number, int) and not isinstance(number, bool)
        waiting = self.waiting.get(number) if known else None  # type: ignore[arg-type]
        if waiting is None or waiting.answer.done() or not message.keys() & {"result", "error"}:
            self.oddities.unasked += 1
        elif "error" in message:
            waiting.answer.set_exception(_problem(message["error"]))
        else:
            waiting.answer.set_result(message["result"])

    def _asked(self, message: dict[str, Any]) -> bytes | None:
        method, params = message["method"], message.get("params")
        if "id" not in message:
            self._told(method, params if isinstance(params, dict) else {})
            return None
        if method == "ping":
            return encode({"id": message["id"], "result": {}})
        refusal = {"code": METHOD_NOT_FOUND, "message": f"{method[:80]} is not offered here"}
        return encode({"id": message["id"], "error": refusal})

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/tools/list_changed":
            self.on_changed()
        elif method == "notifications/progress":
            token = params.get("progressToken")
            waiting = self.waiting.get(token) if isinstance(token, int) else None
            if waiting is not None:
                waiting.deadline = time.monotonic() + waiting.seconds


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line without its end."""
    whole = {"jsonrpc": "2.0", **message}
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def gone(name: str) -> ServerGone:
    """The error of a connection that ended."""
    return ServerGone(f"{name}: connection closed")


def _problem(error: Any) -> ServerProblem:
    told = error if isinstance(error, dict) else {}
    code, message = told.get("code", 0), str(told.get("message", "no reason given"))
    return ServerProblem(f"the server answered with error {code}: {message[:500]}")
