"""One dispatcher answers the handshake, hands the rest to an offer, and encodes what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evercontext.errors import NotFound
from evercontext.mcp.messages import METHOD_NOT_FOUND, RpcError, RpcRequest
from evercontext.mcp.revisions import (
    HANDSHAKE_REVISIONS,
    STATELESS_REVISION,
    ServerInfo,
)
from evercontext.mcp.server.dispatcher import Answer, answer, cancelled_id, respond


class Echo:
    """Offers one method, and fails in both ways."""

    def __init__(self, stateless: dict[str, Any] | None = None) -> None:
        self.info = ServerInfo("echo", {"tools": {}}, "Say something.", stateless)

    async def answer(self, request: RpcRequest, context: str) -> Answer:
        if request.method == "echo":
            return {"context": context, **request.params}
        if request.method == "missing":
            raise NotFound("it is not there")
        raise RpcError(METHOD_NOT_FOUND, "no such method")


def request(method: str, **params: Any) -> RpcRequest:
    return RpcRequest(method, params, 7, False)


async def response(offer: Echo, asked: RpcRequest, *, stateless: bool = False) -> Any:
    return json.loads(await respond(asked, answer(offer, asked, "here"), stateless=stateless))


@pytest.mark.parametrize(
    ("proposed", "agreed"),
    [*((version, version) for version in HANDSHAKE_REVISIONS), ("1999", HANDSHAKE_REVISIONS[0])],
)
async def test_the_handshake_agrees_on_a_revision(proposed: str, agreed: str) -> None:
    result = (await response(Echo(), request("initialize", protocolVersion=proposed)))["result"]
    assert result["protocolVersion"] == agreed
    assert result["serverInfo"]["name"] == "echo"


async def test_the_stateless_revision_is_discovered_only_where_it_is_served() -> None:
    served = await response(Echo({"tools": {}}), request("server/discover"))
    assert STATELESS_REVISION in served["result"]["supportedVersions"]
    refused = await response(Echo(), request("server/discover"))
    assert refused["error"]["code"] == METHOD_NOT_FOUND


async def test_results_and_errors_are_encoded_under_the_id() -> None:
    assert await response(Echo(), request("echo", a=1)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"context": "here", "a": 1},
    }
    assert (await response(Echo(), request("missing")))["error"]["message"] == "it is not there"
    assert (await response(Echo(), request("other")))["error"]["code"] == METHOD_NOT_FOUND
    stateless = await response(Echo({}), request("echo"), stateless=True)
    assert stateless["result"]["resultType"] == "complete"


def test_only_a_cancellation_names_a_request() -> None:
    assert cancelled_id(RpcRequest("notifications/cancelled", {"requestId": 3}, None, True)) == 3
    assert (
        cancelled_id(RpcRequest("notifications/cancelled", {"requestId": [3]}, None, True)) is None
    )
    assert cancelled_id(RpcRequest("notifications/other", {"requestId": 3}, None, True)) is None
