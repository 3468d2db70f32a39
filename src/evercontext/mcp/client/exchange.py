"""Exchange JSON-RPC with a tool server that may hang, lie, flood or die.

Every wait has an end, every size a limit, and what was not asked for is counted and ignored.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evercontext.domain.caller_scope import ClientChannel, Hear
from evercontext.domain.visible_text import escaped_line
from evercontext.errors import ServerGone, ServerProblem, ServerTimeout
from evercontext.mcp.messages import METHOD_NOT_FOUND, Params, Result, encode, read_message

LONGEST_LINE = 4 * 1024 * 1024
LONGEST_WAIT = 600.0
"""Seconds after which progress no longer extends a call."""
CHANGES_REQUEST: Params = {
    "toolsListChanged": True,
    "resourcesListChanged": True,
    "promptsListChanged": True,
}
"""The notifications that ``subscriptions/listen`` of the stateless revision asks for."""
RELAYED_REQUESTS = frozenset({"sampling/createMessage", "elicitation/create"})
"""Requests of a server that are put to the client whose call they belong to."""
LOG_MESSAGE, RESOURCE_UPDATED = "notifications/message", "notifications/resources/updated"
_MOST_RELAYED = 16
_LONGEST_SHOWN, _LONGEST_MESSAGE, _LARGEST_DATA = 500, 10_000, 64 * 1024
_CHANGED = "/list_changed"


Notified = Callable[[str, dict[str, Any]], None]
"""Takes a notification of a server that is for nobody in particular: its method and parameters."""


def ignore_notification(method: str, params: dict[str, Any]) -> None:
    """Take a notification that nobody listens to."""


@dataclass(slots=True)
class UnusableMessages:
    """Counts the messages of a server that nobody could use."""

    unexpected: int = 0
    """Responses under an id that no request waits for: wrong, repeated or late."""
    malformed: int = 0
    """Lines that are no JSON-RPC."""
    refused: int = 0
    """Requests of the server that are not answered here, such as sampling."""


class McpConnection(Protocol):
    """A connection to one server."""

    @property
    def unusable(self) -> UnusableMessages:
        """The messages of the server that nobody could use."""
        ...

    @property
    def open(self) -> bool:
        """False once the connection is lost."""
        ...

    @property
    def hears_changes(self) -> bool:
        """True while the server can tell by itself that its lists changed."""
        ...

    async def request(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        headers: Mapping[str, str] | None = None,
        client: ClientChannel | None = None,
    ) -> Result:
        """Send a request and return its result; raise ``ServerProblem`` in time.

        ``headers`` are sent along where the transport has headers: over HTTP.
        """
        ...

    async def notify(self, method: str, params: Params) -> None:
        """Send a notification."""
        ...

    def use_revision(self, version: str, envelope: Params | None) -> None:
        """Use the agreed revision from now on; an envelope goes into every request."""
        ...

    async def subscribe(self) -> None:
        """Begin to receive notifications, where that needs a stream of its own."""
        ...

    async def close(self) -> None:
        """Close the connection, and end the server if it is a child process."""
        ...


class RpcProblem(ServerProblem):
    """The server answered with an error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        shown = escaped_line(message[:_LONGEST_SHOWN])
        super().__init__(f"the server answered with error {code}: {shown}")
        self.rpc_code, self.rpc_message = code, message[:_LONGEST_MESSAGE]
        self.rpc_data = data


def discard(future: asyncio.Future[Any]) -> None:
    """Cancel a future that nobody waits for any more, and read its failure if it has one."""
    if not future.cancel() and not future.cancelled():
        future.exception()


@dataclass(slots=True)
class PendingRequest:
    """A request that has no response yet."""

    response: asyncio.Future[Result]
    seconds: float
    deadline: float
    latest: float
    """When progress no longer extends the deadline."""
    hear: Hear | None = None
    client: ClientChannel | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Exchange:
    """Matches responses with requests, whatever carries the messages."""

    on_changed: Callable[[str], None] = lambda kind: None
    """Called with ``tools``, ``resources`` or ``prompts`` when that list changed."""
    on_notified: Notified = ignore_notification
    """Called with what the server says to nobody in particular: updates of resources, logs."""
    send_later: Callable[[bytes], None] = lambda message: None
    """Sends the answer to a request of the server, once there is one."""
    unusable: UnusableMessages = field(default_factory=UnusableMessages)
    pending: dict[int, PendingRequest] = field(default_factory=dict)
    envelope: Params = field(default_factory=dict)
    """What the stateless revision requires in the ``_meta`` of every request."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _relaying: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(
        self,
        method: str,
        params: Params,
        seconds: float,
        hear: Hear | None = None,
        client: ClientChannel | None = None,
    ) -> tuple[int, bytes, PendingRequest]:
        """Return the number of a new request, its message, and where its response will be."""
        number, loop = next(self._numbers), asyncio.get_running_loop()
        now = time.monotonic()
        latest = now + max(LONGEST_WAIT, seconds)
        pending = PendingRequest(loop.create_future(), seconds, now + seconds, latest, hear, client)
        pending.timer = loop.call_later(seconds, self._check_deadline, pending)
        self.pending[number] = pending
        # A call may say more about its client than the envelope of the connection does.
        own = params.get("_meta", {}) if self.envelope else {}
        params = {**params, "_meta": {**self.envelope, **own, "progressToken": number}}
        return number, encode({"id": number, "method": method, "params": params}), pending

    def with_envelope(self, params: Params) -> Params:
        """Return the parameters of a notification with the envelope, where there is one."""
        return {**params, "_meta": dict(self.envelope)} if self.envelope else params

    def end(self, number: int) -> None:
        """Forget a request that nobody waits for any more."""
        pending = self.pending.pop(number, None)
        if pending is not None:
            if pending.timer is not None:
                pending.timer.cancel()
            discard(pending.response)

    def _check_deadline(self, pending: PendingRequest) -> None:
        left = min(pending.deadline, pending.latest) - time.monotonic()
        if pending.response.done():
            return
        if left > 0:
            loop = asyncio.get_running_loop()
            pending.timer = loop.call_later(left, self._check_deadline, pending)
        else:
            late = ServerTimeout(f"no answer within {pending.seconds:g} s")
            pending.response.set_exception(late)

    def receive(self, line: bytes, number: int | None = None) -> bytes | None:
        """Take one message of the server; return the reply to send, if it needs one.

        ``number`` is the request in whose response the message came, where that is known.
        """
        parsed = read_message(line)
        if parsed is None:
            self.unusable.malformed += 1
            return None
        message, raw = parsed
        if isinstance(message.get("method"), str):
            return self._receive_request(message, number)
        self._receive_response(message, raw)
        return None

    def fail(self, problem: ServerProblem) -> None:
        """Fail every pending request."""
        for pending in self.pending.values():
            if not pending.response.done():
                pending.response.set_exception(problem)
        for task in self._relaying:
            task.cancel()

    def fail_request(self, number: int, problem: ServerProblem) -> None:
        """Fail one request, if it is still pending."""
        pending = self.pending.get(number)
        if pending is not None and not pending.response.done():
            pending.response.set_exception(problem)

    def _receive_response(self, message: dict[str, Any], raw: str) -> None:
        number = message.get("id")
        is_number = isinstance(number, int) and not isinstance(number, bool)
        pending = self.pending.get(number) if is_number else None  # type: ignore[arg-type]
        if pending is None or pending.response.done() or not message.keys() & {"result", "error"}:
            self.unusable.unexpected += 1
        elif "error" in message:
            pending.response.set_exception(_problem(message["error"]))
        else:
            pending.response.set_result(Result(message["result"], raw))

    def _receive_request(self, message: dict[str, Any], number: int | None) -> bytes | None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._receive_notification(method, params, number)
            return None
        if method == "ping":
            return encode({"id": message["id"], "result": {}})
        client = self._client_of(number) if method in RELAYED_REQUESTS else None
        if client is not None and len(self._relaying) < _MOST_RELAYED:
            task = asyncio.ensure_future(self._relay(client, message["id"], method, params))
            self._relaying.add(task)
            task.add_done_callback(self._relaying.discard)
            return None
        self.unusable.refused += 1
        refusal = {"code": METHOD_NOT_FOUND, "message": f"{method[:80]} is not offered here"}
        return encode({"id": message["id"], "error": refusal})

    async def _relay(
        self, client: ClientChannel, id: Any, method: str, params: dict[str, Any]
    ) -> None:
        """Put a server's question to the client whose call it belongs to, and pass its answer."""
        for pending in self.pending.values():
            # A person may have to answer: the call waits as long as any call may.
            if pending.client is not None and pending.client.key == client.key:
                pending.deadline = pending.latest
        self.send_later(encode({"id": id, **await client.ask(method, params)}))

    def _client_of(self, number: int | None) -> ClientChannel | None:
        """Return the client a message is for: of its own request, or of all that are running."""
        if number is not None and number in self.pending:
            return self.pending[number].client
        clients = {p.client.key: p.client for p in self.pending.values() if p.client is not None}
        return next(iter(clients.values())) if len(clients) == 1 else None

    def _receive_notification(
        self, method: str, params: dict[str, Any], number: int | None
    ) -> None:
        if method.endswith(_CHANGED):
            self.on_changed(method.removesuffix(_CHANGED).rpartition("/")[2])
        elif method == LOG_MESSAGE:
            client = self._client_of(number)
            if client is not None:
                client.notify(method, params)
            elif not any(pending.client for pending in self.pending.values()):
                self.on_notified(method, params)
        elif method == RESOURCE_UPDATED:
            self.on_notified(method, params)
        elif method == "notifications/progress":
            token = params.get("progressToken")
            pending = self.pending.get(token) if isinstance(token, int) else None
            if pending is not None:
                pending.deadline = time.monotonic() + pending.seconds
                if pending.hear is not None:
                    pending.hear(params)


def cancellation(number: int) -> bytes:
    """Return the message that cancels a request."""
    return encode({"method": "notifications/cancelled", "params": {"requestId": number}})


def connection_closed(name: str) -> ServerGone:
    """Return the error of a connection that ended."""
    return ServerGone(f"{name}: connection closed")


def _problem(error: Any) -> RpcProblem:
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) else 0
    return RpcProblem(number, str(fields.get("message", "no reason given")), _bounded(fields))


def _bounded(fields: dict[str, Any]) -> Any:
    """Return the data of an error, unless it is larger than anybody needs."""
    data = fields.get("data")
    return data if len(encode({"data": data})) <= _LARGEST_DATA else None
