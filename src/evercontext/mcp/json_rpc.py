"""JSON-RPC 2.0: what a message must look like, and how it is answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
NOT_INITIALISED = -32002
BUSY = -32000

Id = str | int | None


class RpcError(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str, data: Any = None, id: Id = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data
        self.id = id
        """The request that is answered, where it could be read."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request; without an id it is a notification and gets no answer."""

    method: str
    params: dict[str, Any]
    id: Id
    notification: bool


def parse(text: str | bytes) -> Call | None:
    """Read one message; ``None`` for a response to something we never asked."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "not valid JSON") from None
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "one request at a time, as an object")
    given = message.get("id")
    if isinstance(given, bool) or not isinstance(given, str | int | None):
        raise RpcError(INVALID_REQUEST, "the id must be a text or a whole number")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    method, params = message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "not a JSON-RPC 2.0 request with a method", id=given)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", id=given)
    return Call(method, params, given, "id" not in message)


def result(id: Id, value: Any) -> str:
    """The answer to a request that succeeded."""
    return _dump({"jsonrpc": "2.0", "id": id, "result": value})


def error(id: Id, problem: RpcError) -> str:
    """The answer to a request that did not."""
    told: dict[str, Any] = {"code": problem.code, "message": problem.message}
    if problem.data is not None:
        told["data"] = problem.data
    return _dump({"jsonrpc": "2.0", "id": id, "error": told})


def notification(method: str, params: dict[str, Any]) -> str:
    """Something the client is told without having asked."""
    return _dump({"jsonrpc": "2.0", "method": method, "params": params})


def _dump(message: dict[str, Any]) -> str:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    # What a client sent may come back to it, half a character pair included.
    return text.encode("utf-8", "replace").decode("utf-8")
