"""Two eras of the Model Context Protocol at one door: handshakes, and questions on their own."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from evercontext import __version__
from evercontext.mcp.json_rpc import INVALID_PARAMS, METHOD_NOT_FOUND, Call, RpcError

HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS = "2026-07-28"
HEADER_MISMATCH, UNSUPPORTED = -32020, -32022
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
INFO = {"name": "evercontext-router", "version": __version__}
INSTRUCTIONS = (
    "Tools of many servers behind two: find them with tool_discovery, call them with tool_execute."
)
_OFFERED = {"tools": {"listChanged": False}, "resources": {}, "prompts": {}}
_TOLD = {kind: {"listChanged": True} for kind in _OFFERED}
GREETINGS = frozenset({"initialize", "ping", "server/discover"})
"""Says nothing about tools: a client whose token comes with each call must get this far."""
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS = {METHOD_NOT_FOUND: 404, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, UNSUPPORTED: 400}


def meta_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``_meta`` of a question."""
    found = params.get("_meta")
    return found if isinstance(found, Mapping) else {}


def is_stateless(call: Call, version: str) -> bool:
    """True for a question of the stateless revision; ``version`` is what its header says."""
    return VERSION_KEY in meta_of(call.params) or (version != "" and version not in HANDSHAKE)


def check_envelope(call: Call, headers: Mapping[bytes, bytes] | None) -> None:
    """Raise unless a stateless question carries what it must, in its headers too if it has any."""
    meta = meta_of(call.params)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing and VERSION_KEY in missing:
        given = (headers or {}).get(b"mcp-protocol-version", b"").decode("latin-1")
        raise _unsupported(given) if given != STATELESS else _lacking(missing)
    if missing:
        raise _lacking(missing)
    if headers is not None:
        _check_headers(call, meta, headers)
    if meta[VERSION_KEY] != STATELESS:
        raise _unsupported(str(meta[VERSION_KEY])[:32])


def _check_headers(call: Call, meta: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> None:
    told = {
        b"mcp-protocol-version": meta[VERSION_KEY],
        b"mcp-method": call.method,
        b"mcp-name": call.params.get(_NAMED.get(call.method, "")),
    }
    for name, value in told.items():
        if value is not None and _decoded(headers.get(name)) != value:
            raise RpcError(HEADER_MISMATCH, f"the {name.decode()} header says something else")


def _lacking(missing: list[str]) -> RpcError:
    return RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}")


def _unsupported(version: str) -> RpcError:
    told = {"supported": [STATELESS, *HANDSHAKE], "requested": version[:32]}
    return RpcError(UNSUPPORTED, "Unsupported protocol version", told)


def _decoded(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1")
    if not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def greeting(call: Call, *, tells: bool = False) -> dict[str, Any]:
    """The answer to one of the ``GREETINGS``; ``tells``: this door can tell of changed lists."""
    if call.method == "initialize":
        return hello(call.params, _TOLD if tells else _OFFERED)
    return discovered() if call.method == "server/discover" else {}


def hello(params: Mapping[str, Any], offered: Mapping[str, Any] = _OFFERED) -> dict[str, Any]:
    """The answer to ``initialize``."""
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[0],
        "capabilities": offered,
        "serverInfo": INFO,
        "instructions": INSTRUCTIONS,
    }


def discovered() -> dict[str, Any]:
    """The answer to ``server/discover``."""
    return {
        "supportedVersions": [STATELESS, *HANDSHAKE],
        "capabilities": _OFFERED,
        "serverInfo": INFO,
        "instructions": INSTRUCTIONS,
        "ttlMs": 60_000,
        "cacheScope": "private",
    }


def completed(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result as the stateless revision wants it."""
    if result.get("resultType") == "input_required":
        return result
    cached = {"ttlMs": 0, "cacheScope": "private"} if method.endswith(("/list", "/read")) else {}
    return {"resultType": "complete", **cached, **result}


def status_of(problem: RpcError, stateless: bool) -> int:
    """The HTTP status of an error; the handshake era says 200 to whatever could be read."""
    return _STATUS.get(problem.code, 200) if stateless else 200
