"""JSON-RPC with a tool server that may do anything: hang, lie, flood or die.

Every wait has an end, every size a limit, and what was not asked for is counted and ignored.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evercontext.domain.caller_scope import Hear
from evercontext.errors import ServerGone, ServerProblem, ServerTimeout
from evercontext.mcp.message import Answer, encode, read_message

LONGEST_LINE = 4 * 1024 * 1024
LONGEST_WAIT = 600.0
"""Seconds after which progress no longer extends a call."""
METHOD_NOT_FOUND = -32601
Params = Mapping[str, Any]
_CHANGED = "/list_changed"


@dataclass(slots=True)
class Oddities:
    """What a server sent that nobody could use."""

    unasked: int = 0
    """Answers with an id that waits for none: wrong, repeated or late."""
    broken: int = 0
    """Lines that are no JSON-RPC."""
    refused: int = 0
    """Questions of the server that nobody here answers, such as sampling."""


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

    @property
    def hears(self) -> bool:
        """True while the server can tell by itself that its lists changed."""
        ...

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask and return the result; raise ``ServerProblem`` in time.

        ``headers`` go beside the question where there is a beside: over HTTP.
        """
        ...

    async def notify(self, method: str, params: Params) -> None:
        """Tell without asking."""
        ...

    def speak(self, version: str, envelope: Params | None) -> None:
        """Say the agreed revision from now on; an envelope goes with every question."""
        ...

    async def listen(self) -> None:
        """Begin to hear what the server says unasked, where that needs a stream of its own."""
        ...

    async def close(self) -> None:
        """End the connection, and the server if it is ours."""
        ...


class RpcProblem(ServerProblem):
    """The server answered with an error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"the server answered with error {code}: {message[:500]}")
        self.rpc_code, self.rpc_data = code, data


def forget(future: asyncio.Future[Any]) -> None:
    """Nobody waits for it any more, and so its failure is no news either."""
    if not future.cancel() and not future.cancelled():
        future.exception()


@dataclass(slots=True)
class Waiting:
    """A question that is not answered yet."""

    answer: asyncio.Future[Answer]
    seconds: float
    deadline: float
    last: float
    """When progress no longer helps."""
    hear: Hear | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Exchange:
    """Which question waits for which answer, whatever carries the messages."""

    on_changed: Callable[[], None] = lambda: None
    """Called when the server says that one of its lists is another one."""
    oddities: Oddities = field(default_factory=Oddities)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    envelope: Params = field(default_factory=dict)
    """What the stateless revision wants in the ``_meta`` of every question."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def ask(
        self, method: str, params: Params, seconds: float, hear: Hear | None = None
    ) -> tuple[int, bytes, Waiting]:
        """Return the number, the message and the place where its answer will be."""
        number, loop = next(self._numbers), asyncio.get_running_loop()
        now = time.monotonic()
        last = now + max(LONGEST_WAIT, seconds)
        waiting = Waiting(loop.create_future(), seconds, now + seconds, last, hear)
        waiting.timer = loop.call_later(seconds, self._overdue, waiting)
        self.waiting[number] = waiting
        # A call may say more of its client than the envelope of the connection does.
        own = params.get("_meta", {}) if self.envelope else {}
        meta = {**self.envelope, **own, "progressToken": number}
        given = {**params, "_meta": meta}
        return number, encode({"id": number, "method": method, "params": given}), waiting

    def settle(self, number: int) -> None:
        """Nobody waits for this answer any more."""
        waiting = self.waiting.pop(number, None)
        if waiting is not None:
            if waiting.timer is not None:
                waiting.timer.cancel()
            forget(waiting.answer)

    def _overdue(self, waiting: Waiting) -> None:
        left = min(waiting.deadline, waiting.last) - time.monotonic()
        if waiting.answer.done():
            return
        if left > 0:
            loop = asyncio.get_running_loop()
            waiting.timer = loop.call_later(left, self._overdue, waiting)
        else:
            late = ServerTimeout(f"no answer within {waiting.seconds:g} s")
            waiting.answer.set_exception(late)

    def take(self, line: bytes) -> bytes | None:
        """Take one message; return what has to be said in reply to it, if anything."""
        read = read_message(line)
        if read is None:
            self.oddities.broken += 1
            return None
        message, raw = read
        if isinstance(message.get("method"), str):
            return self._asked(message)
        self._answered(message, raw)
        return None

    def fail(self, problem: ServerProblem) -> None:
        """Give everybody who waits the bad news."""
        for waiting in self.waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(problem)

    def fail_one(self, number: int, problem: ServerProblem) -> None:
        """Give whoever waits for this answer the bad news."""
        waiting = self.waiting.get(number)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_exception(problem)

    def _answered(self, message: dict[str, Any], raw: str) -> None:
        number = message.get("id")
        known = isinstance(number, int) and not isinstance(number, bool)
        waiting = self.waiting.get(number) if known else None  # type: ignore[arg-type]
        if waiting is None or waiting.answer.done() or not message.keys() & {"result", "error"}:
            self.oddities.unasked += 1
        elif "error" in message:
            waiting.answer.set_exception(_problem(message["error"]))
        else:
            waiting.answer.set_result(Answer(message["result"], raw))

    def _asked(self, message: dict[str, Any]) -> bytes | None:
        method, params = message["method"], message.get("params")
        if "id" not in message:
            self._told(method, params if isinstance(params, dict) else {})
            return None
        if method == "ping":
            return encode({"id": message["id"], "result": {}})
        self.oddities.refused += 1
        refusal = {"code": METHOD_NOT_FOUND, "message": f"{method[:80]} is not offered here"}
        return encode({"id": message["id"], "error": refusal})

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if method.endswith(_CHANGED):
            self.on_changed()
        elif method == "notifications/progress":
            token = params.get("progressToken")
            waiting = self.waiting.get(token) if isinstance(token, int) else None
            if waiting is not None:
                waiting.deadline = time.monotonic() + waiting.seconds
                if waiting.hear is not None:
                    waiting.hear(params)


def escaped(text: str) -> str:
    """Text of a server with everything written out that could steer a terminal or break a line."""
    if text.isprintable():
        return text
    parts = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(parts)


def gone(name: str) -> ServerGone:
    """The error of a connection that ended."""
    return ServerGone(f"{name}: connection closed")


def _problem(error: Any) -> RpcProblem:
    told = error if isinstance(error, dict) else {}
    code = told.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) else 0
    message = escaped(str(told.get("message", "no reason given"))[:500])
    return RpcProblem(number, message, told.get("data"))
