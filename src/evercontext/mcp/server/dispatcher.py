"""Answer the requests of clients: the handshake here, every other method by an offer.

A transport parses a message, has the request answered here, and sends the bytes that come back.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from evercontext.domain.error_codes import json_rpc_code
from evercontext.errors import EverContextError
from evercontext.mcp.client.exchange import RpcProblem
from evercontext.mcp.messages import (
    Id,
    RpcError,
    RpcRequest,
    Surrogates,
    encode_error,
    encode_result,
)
from evercontext.mcp.revisions import ServerInfo, complete_result

Answer = dict[str, Any] | bytes
"""The result of a request, or its whole response already encoded."""
Context = TypeVar("Context")
_Taken = TypeVar("_Taken", contravariant=True)


class Offer(Protocol[_Taken]):
    """What a server offers to its clients, whatever carries the messages."""

    @property
    def info(self) -> ServerInfo:
        """What the handshake says about the server."""
        ...

    async def answer(self, request: RpcRequest, context: _Taken) -> Answer:
        """Answer one request; ``context`` is what the transport knows about it."""
        ...


async def answer(offer: Offer[Context], request: RpcRequest, context: Context) -> Answer:
    """Answer a request, be it of the handshake or of the offer."""
    handshake = offer.info.handshake_result(request)
    return handshake if handshake is not None else await offer.answer(request, context)


async def respond(
    request: RpcRequest,
    answer: Awaitable[Answer],
    *,
    stateless: bool,
    surrogates: Surrogates = "backslashreplace",
) -> bytes:
    """Return the response to a request, or the error that answering it raised."""
    try:
        return encode_answer(request, await answer, stateless, surrogates)
    except EverContextError as error:
        return encode_error(request.id, rpc_error(error))
    except RpcError as error:
        return encode_error(request.id, error)


def rpc_error(error: EverContextError) -> RpcError:
    """Return an error of ours as one of JSON-RPC; one that a server answered with stays its own."""
    if isinstance(error, RpcProblem):
        return RpcError(error.rpc_code, error.rpc_message, error.rpc_data)
    return RpcError(json_rpc_code(error), str(error))


def encode_answer(
    request: RpcRequest,
    answer: Answer,
    stateless: bool,
    surrogates: Surrogates = "backslashreplace",
) -> bytes:
    """Return the whole response to a request; bytes are one already."""
    if isinstance(answer, bytes):
        return answer
    result = complete_result(request.method, answer) if stateless else answer
    return encode_result(request.id, result, surrogates)


def cancelled_id(notification: RpcRequest) -> Id:
    """Return the id that ``notifications/cancelled`` names; ``None`` for any other message."""
    if notification.method != "notifications/cancelled":
        return None
    id = notification.params.get("requestId")
    return id if isinstance(id, str | int) else None
