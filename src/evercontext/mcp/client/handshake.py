"""The first words with a server, in either era of the protocol.

Servers that shake hands are greeted so. One that knows only the stateless revision refuses the
handshake, and is then asked what it offers; from there on every question carries its own envelope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evercontext import __version__
from evercontext.errors import ServerProblem
from evercontext.mcp.client.exchange import Params, RpcProblem, Wire

HANDSHAKE = "2025-11-25"
"""What is offered; a server answers with what it speaks."""
KNOWN = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS = "2026-07-28"
US = {"name": "evercontext", "version": __version__}
ENVELOPE: Params = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": US,
}


@dataclass(frozen=True, slots=True)
class Greeted:
    """What a server said of itself."""

    version: str
    offers: frozenset[str]
    """``tools``, ``resources``, ``prompts``, as far as it said so."""


async def greet(name: str, wire: Wire, seconds: float) -> Greeted:
    """Agree on a revision; raise ``ServerProblem`` if that cannot be done."""
    try:
        return await _shake_hands(name, wire, seconds)
    except RpcProblem as refusal:
        try:
            return await _discover(name, wire, seconds)
        except RpcProblem:
            # It knows neither: what it said to the usual greeting tells more.
            raise refusal from None


async def _shake_hands(name: str, wire: Wire, seconds: float) -> Greeted:
    hello = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": US}
    answer = (await wire.request("initialize", hello, seconds)).value
    version = answer.get("protocolVersion") if isinstance(answer, dict) else None
    if not isinstance(version, str):
        raise ServerProblem(f"{name} did not say which protocol it speaks")
    # An unknown revision is taken at its word: lists and calls look alike in all of them.
    wire.speak(version if version in KNOWN else HANDSHAKE, None)
    await wire.notify("notifications/initialized", {})
    return Greeted(version[:32], _offers(answer))


async def _discover(name: str, wire: Wire, seconds: float) -> Greeted:
    wire.speak(STATELESS, ENVELOPE)
    answer = (await wire.request("server/discover", {}, seconds)).value
    versions = answer.get("supportedVersions") if isinstance(answer, dict) else None
    if not isinstance(versions, list) or STATELESS not in versions:
        raise ServerProblem(f"{name} speaks no revision of the protocol that is known here")
    return Greeted(STATELESS, _offers(answer))


def _offers(answer: Any) -> frozenset[str]:
    found = answer.get("capabilities")
    return frozenset(map(str, found)) if isinstance(found, dict) else frozenset()
