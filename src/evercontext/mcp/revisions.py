"""List the revisions of the protocol: those with a handshake, and the stateless one.

With a handshake, client and server agree on a revision first. Without one, every request carries
an envelope of its own in ``_meta`` and, over HTTP, repeats parts of it in headers.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evercontext import __version__
from evercontext.mcp.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Params,
    RpcError,
    RpcRequest,
    meta_of,
)

HANDSHAKE_REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Newest first: the first one is offered, and answered to a client that asks for another."""
STATELESS_REVISION = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
HEADER_MISMATCH, UNSUPPORTED_REVISION = -32020, -32022
HANDSHAKE_METHODS = frozenset({"initialize", "ping", "server/discover"})
"""Methods that tell nothing about tools: a client may send its token only with later requests."""
_REMOVED = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""Methods of earlier revisions that the stateless one no longer has."""
_NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS = {
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_REVISION: 400,
}


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says about itself in the handshake."""

    name: str
    capabilities: Mapping[str, Any]
    instructions: str = ""
    stateless_capabilities: Mapping[str, Any] | None = None
    """``None``: the stateless revision is not served."""

    def handshake_result(self, request: RpcRequest) -> dict[str, Any] | None:
        """Return the result of a handshake method, or ``None`` for every other method."""
        if request.method == "initialize":
            return self._initialize_result(request.params)
        if request.method == "server/discover" and self.stateless_capabilities is not None:
            return self._discover_result(self.stateless_capabilities)
        return {} if request.method == "ping" else None

    def _initialize_result(self, params: Params) -> dict[str, Any]:
        version = agreed_revision(params.get("protocolVersion"))
        return {"protocolVersion": version, **self._description(self.capabilities)}

    def _discover_result(self, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        versions = [STATELESS_REVISION, *HANDSHAKE_REVISIONS]
        cached = {"ttlMs": 60_000, "cacheScope": "private"}
        return {"supportedVersions": versions, **self._description(capabilities), **cached}

    def _description(self, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        instructions = {"instructions": self.instructions} if self.instructions else {}
        info = {"name": self.name, "version": __version__}
        return {"capabilities": capabilities, "serverInfo": info, **instructions}


def agreed_revision(proposed: Any) -> str:
    """Return the revision a client proposed if it is served here, the newest one otherwise."""
    return proposed if proposed in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[0]


def is_stateless(request: RpcRequest, version_header: str = "") -> bool:
    """Tell whether a request belongs to the stateless revision."""
    unknown = version_header != "" and version_header not in HANDSHAKE_REVISIONS
    return VERSION_KEY in meta_of(request.params) or unknown


def check_envelope(request: RpcRequest, headers: Mapping[bytes, bytes] | None) -> None:
    """Raise ``RpcError`` unless a stateless request has its envelope, and headers that match it."""
    if request.method in _REMOVED:
        raise RpcError(
            METHOD_NOT_FOUND, f"{request.method} is not in revision {STATELESS_REVISION}"
        )
    meta = meta_of(request.params)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if VERSION_KEY in missing:
        version = (headers or {}).get(b"mcp-protocol-version", b"").decode("latin-1")
        raise _unsupported(version) if version != STATELESS_REVISION else _missing(missing)
    if missing:
        raise _missing(missing)
    if headers is not None:
        _check_headers(request, meta, headers)
    if meta[VERSION_KEY] != STATELESS_REVISION:
        raise _unsupported(str(meta[VERSION_KEY])[:32])


def _check_headers(request: RpcRequest, meta: Params, headers: Mapping[bytes, bytes]) -> None:
    expected = {
        b"mcp-protocol-version": meta[VERSION_KEY],
        b"mcp-method": request.method,
        b"mcp-name": request.params.get(_NAME_PARAMETERS.get(request.method, "")),
    }
    for name, value in expected.items():
        if value is not None and _decode_header(headers.get(name)) != value:
            raise RpcError(HEADER_MISMATCH, f"the {name.decode()} header says something else")


def check_mirrored(mirrored: Mapping[str, Any], headers: Mapping[bytes, bytes] | None) -> None:
    """Raise ``RpcError`` unless the arguments that belong into headers stand there as well."""
    for name, value in mirrored.items() if headers is not None else ():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if _decode_header((headers or {}).get(name.lower().encode())) != text:
            raise RpcError(HEADER_MISMATCH, f"the {name.lower()} header says something else")


def _missing(keys: list[str]) -> RpcError:
    return RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(keys)}")


def _unsupported(version: str) -> RpcError:
    supported = [STATELESS_REVISION, *HANDSHAKE_REVISIONS]
    data = {"supported": supported, "requested": version[:32]}
    return RpcError(UNSUPPORTED_REVISION, "Unsupported protocol version", data)


def complete_result(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result with the fields that the stateless revision adds."""
    if result.get("resultType") == "input_required":
        return result
    cached = {"ttlMs": 0, "cacheScope": "private"} if method.endswith(("/list", "/read")) else {}
    return {"resultType": "complete", **cached, **result}


def http_status_of(error: RpcError, stateless: bool) -> int:
    """Return the HTTP status of an error; before the stateless revision it is always 200."""
    return _STATUS.get(error.code, 200) if stateless else 200


def routing_headers(method: str, params: Params) -> dict[str, Any]:
    """Return the headers in which a stateless request repeats its method and name."""
    name = params.get(_NAME_PARAMETERS.get(method, ""))
    return {"mcp-method": method, **({"mcp-name": name} if name else {})}


def encode_header(value: Any) -> str:
    """Return a value as a header may carry it: plain ASCII, or base64 in a wrapper."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def _decode_header(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1").strip(" \t")
    if not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
