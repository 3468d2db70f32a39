"""Build responses in the one shape every client gets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evercontext.domain.error_codes import http_status
from evercontext.errors import EverContextError

RawHeaders = list[tuple[bytes, bytes]]

JSON = b"application/json"
_GUARDS: RawHeaders = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


def encode(value: Any) -> bytes:
    """Return compact JSON; a lone surrogate is written as its escape, which JSON allows."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def error_body(error: EverContextError, trace_id: str) -> dict[str, Any]:
    """Return the body of an error answer."""
    message = str(error)
    return {
        "error": {"code": error.code, "message": message},
        "detail": message,
        "trace_id": trace_id,
    }


def error_response(
    error: EverContextError,
    trace_id: str,
    *,
    close: bool = False,
    extra: Sequence[tuple[bytes, bytes]] = (),
) -> tuple[dict[str, Any], bytes]:
    """Return the start message and the body that tell of ``error``."""
    body = encode(error_body(error, trace_id))
    headers = [*extra, (b"connection", b"close")] if close else list(extra)
    if http_status(error) == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if http_status(error) == 503:
        headers.append((b"retry-after", b"1"))
    return start(http_status(error), body, headers), body


def start(
    status: int,
    body: bytes,
    extra: Sequence[tuple[bytes, bytes]] = (),
    media: bytes = JSON,
) -> dict[str, Any]:
    """Return the start message of an answer whose whole body is known."""
    length = str(len(body)).encode()
    headers = [(b"content-type", media), (b"content-length", length), *_GUARDS, *extra]
    return {"type": "http.response.start", "status": status, "headers": headers}
