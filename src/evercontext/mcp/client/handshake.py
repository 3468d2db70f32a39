"""Agree with a server on a revision of the protocol.

Servers with a handshake are greeted so. One that knows only the stateless revision refuses the
handshake, and is then asked what it offers; from there on every request carries its own envelope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evercontext import __version__
from evercontext.errors import ServerProblem
from evercontext.mcp.client.exchange import McpConnection, RpcProblem
from evercontext.mcp.messages import Params
from evercontext.mcp.revisions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HANDSHAKE_REVISIONS,
    STATELESS_REVISION,
    VERSION_KEY,
    agreed_revision,
)

CLIENT_INFO = {"name": "evercontext", "version": __version__}
ENVELOPE: Params = {
    VERSION_KEY: STATELESS_REVISION,
    CAPABILITIES_KEY: {},
    CLIENT_KEY: CLIENT_INFO,
}


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a server said about itself."""

    version: str
    capabilities: frozenset[str]
    """``tools``, ``resources``, ``prompts``, as far as the server declared them."""


async def shake_hands(
    name: str, connection: McpConnection, seconds: float, capabilities: Params | None = None
) -> Handshake:
    """Agree on a revision; raise ``ServerProblem`` if that cannot be done.

    ``capabilities`` are those of the clients on whose behalf we connect.
    """
    try:
        return await _initialize(name, connection, seconds, capabilities or {})
    except RpcProblem as refusal:
        try:
            return await discover(name, connection, seconds)
        except RpcProblem:
            # It knows neither method: its answer to the usual one tells more.
            raise refusal from None


async def _initialize(
    name: str, connection: McpConnection, seconds: float, capabilities: Params
) -> Handshake:
    proposal = {
        "protocolVersion": HANDSHAKE_REVISIONS[0],
        "capabilities": capabilities,
        "clientInfo": CLIENT_INFO,
    }
    result = (await connection.request("initialize", proposal, seconds)).value
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    if not isinstance(version, str):
        raise ServerProblem(f"{name} did not say which protocol it speaks")
    # With an unknown revision we continue: lists and calls look alike in all of them.
    connection.use_revision(agreed_revision(version), None)
    await connection.notify("notifications/initialized", {})
    return Handshake(version[:32], _capabilities(result))


async def discover(name: str, connection: McpConnection, seconds: float) -> Handshake:
    """Agree on the stateless revision; raise ``ServerProblem`` if the server does not speak it."""
    connection.use_revision(STATELESS_REVISION, ENVELOPE)
    result = (await connection.request("server/discover", {}, seconds)).value
    versions = result.get("supportedVersions") if isinstance(result, dict) else None
    if not isinstance(versions, list) or STATELESS_REVISION not in versions:
        raise ServerProblem(f"{name} speaks no revision of the protocol that is known here")
    return Handshake(STATELESS_REVISION, _capabilities(result))


def _capabilities(result: Any) -> frozenset[str]:
    capabilities = result.get("capabilities")
    return frozenset(map(str, capabilities)) if isinstance(capabilities, dict) else frozenset()
