"""What is remembered of the clients that talk to us over HTTP, between two of their requests."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evercontext.domain.caller_scope import NO_ACCESS, Scope
from evercontext.mcp.messages import METHOD_NOT_FOUND, Id, Params, RpcResponse, encode
from evercontext.mcp.server.response_stream import ResponseStream, Send

MOST_SESSIONS = 1_000
MOST_STREAMS = 32
"""Streams of one client that can be taken up again."""
ANSWER_SECONDS = 600.0
"""How long a person has to answer a question of a server."""
LOG_LEVELS = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
_CAPABILITY = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
_numbers = itertools.count(1)


@dataclass(slots=True)
class ClientState:
    """What a client can do, and what it wants to hear of."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    subscriptions: set[str] = field(default_factory=set)
    """Addresses of resources it follows."""
    open_questions: dict[Id, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    def takes(self, method: str, params: Params) -> bool:
        """Tell whether the client wants a notification: not of logs below its level."""
        level = params.get("level")
        if method != "notifications/message" or self.log_level is None or level not in LOG_LEVELS:
            return True
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level)

    def receive(self, response: RpcResponse) -> None:
        """Take the client's answer to a question; one that nobody asked is ignored."""
        waiting = self.open_questions.get(response.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(response.outcome)

    async def ask(self, method: str, params: Params, put: Any) -> dict[str, Any]:
        """Send a request by ``put`` and wait for its answer; an error if it cannot be asked."""
        if _CAPABILITY.get(method, method) not in self.capabilities:
            return _refusal(f"the client behind this call does not offer {method}")
        id = f"router-{next(_numbers)}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.open_questions[id] = answer
        try:
            put(encode({"id": id, "method": method, "params": params}))
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            return _refusal("the client did not answer in time")
        finally:
            del self.open_questions[id]


def _refusal(message: str) -> dict[str, Any]:
    return {"error": {"code": METHOD_NOT_FOUND, "message": message}}


@dataclass(slots=True)
class ClientSession:
    """One client over HTTP, from ``initialize`` on."""

    id: str
    state: ClientState = field(default_factory=ClientState)
    scope: Scope = NO_ACCESS
    """What it may see, as of its latest request."""
    streams: OrderedDict[str, ResponseStream] = field(default_factory=OrderedDict)
    standing: ResponseStream | None = None
    """The stream for what belongs to no request, while the client holds one open."""
    follower: Any = None
    """What watches the lists it was given."""

    def open_stream(self, send: Send) -> ResponseStream:
        """Return a stream for one response, for which the client may come back."""
        name = f"s{next(_numbers)}"
        stream = self.streams[name] = ResponseStream(send, name)
        while len(self.streams) > MOST_STREAMS:
            self.streams.popitem(last=False)
        return stream

    def lost_stream(self, event_id: str) -> tuple[ResponseStream, int] | None:
        """Return the stream an event belongs to, and the number of that event."""
        name, _, number = event_id.rpartition("-")
        stream = self.streams.get(name)
        return (stream, int(number)) if stream and number.isdigit() else None

    def notify(self, message: bytes) -> None:
        """Send what belongs to no request, if the client has a stream for it."""
        if self.standing is not None:
            self.standing.put(message, optional=True)


class ClientSessions:
    """The clients that were here lately; one that was forgotten is known by its id alone."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, ClientSession] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def __iter__(self) -> Any:
        return iter(tuple(self._sessions.values()))

    def get(self, id: str) -> ClientSession:
        """Return the session of an id."""
        session = self._sessions.get(id)
        if session is None:
            session = self._sessions[id] = ClientSession(id)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(id)
        return session

    def end(self, id: str) -> ClientSession | None:
        """Forget a session; its id is refused from now on."""
        self._ended[id] = None
        while len(self._ended) > MOST_SESSIONS:
            self._ended.popitem(last=False)
        return self._sessions.pop(id, None)

    def has_ended(self, id: str) -> bool:
        """Tell whether a client ended this session."""
        return id in self._ended
