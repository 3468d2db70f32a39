"""``run.http``: one request to a server on this machine, or elsewhere if the user allows it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments, PolicyError, ToolProblem, ToolTimeout
from evercontext.workspace.outcomes import plain
from evercontext.workspace.schema import choice, integer, parameters, string

MAX_BODY = 1024 * 1024
MAX_SENT = 1024 * 1024
DEFAULT_SECONDS = 10
LONGEST_SECONDS = 60
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """Where requests may go."""

    anywhere: bool = False
    own_ports: Collection[int] = field(default_factory=frozenset)
    """EverContext's own doors: a model must not answer its own approvals there."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked address: the request goes to ``url`` and says ``host``."""

    url: str
    host: str


def http_tool(policy: HttpPolicy | None = None) -> Tool:
    """Return ``run.http``."""
    rules = policy or HttpPolicy()

    async def run(arguments: Arguments, _caller: Caller) -> ToolResult:
        seconds = min(arguments.get("timeout", DEFAULT_SECONDS), LONGEST_SECONDS)
        target = await _checked(arguments["url"], rules)
        try:
            async with asyncio.timeout(seconds):
                return await _request(target, arguments)
        except TimeoutError:
            raise ToolTimeout(f"no answer from {target.host} in {seconds} s") from None

    return Tool(
        name="run.http",
        description="Make one HTTP request to a server on this machine; redirects are shown.",
        arguments=parameters(
            {
                "url": string("http://localhost:8000/path", least=1),
                "method": choice("Default GET.", METHODS),
                "body": string("Sent as it is."),
                "content_type": string("Default application/json if there is a body."),
                "timeout": integer(f"Seconds (default {DEFAULT_SECONDS}).", minimum=1),
            },
            required=["url"],
        ),
        # EXECUTE: a request can change anything the server can, so plan mode has none of it
        effects=Effect.NETWORK | Effect.EXECUTE,
        run=run,
        timeout=LONGEST_SECONDS + 10,
    )


async def _request(target: Target, arguments: Arguments) -> ToolResult:
    import httpx2

    body = str(arguments.get("body", "")).encode()
    if len(body) > MAX_SENT:
        raise InvalidArguments(f"the body is larger than {MAX_SENT} bytes")
    headers = {"host": target.host, "accept-encoding": "identity"}
    if body:
        headers["content-type"] = arguments.get("content_type", "application/json")
    method = arguments.get("method", "GET")
    try:
        async with (
            httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
            client.stream(method, target.url, content=body, headers=headers) as response,
        ):
            received = await _bounded(response)
            return _result(method, arguments["url"], response, received)
    except (httpx2.HTTPError, ValueError) as error:
        raise ToolProblem(
            f"{method} {target.host} failed: {error or type(error).__name__}"
        ) from None


async def _bounded(response: Any) -> bytes:
    received = bytearray()
    async for piece in response.aiter_raw():
        received += piece
        if len(received) > MAX_BODY:
            break
    return bytes(received)


def _result(method: str, url: str, response: Any, received: bytes) -> ToolResult:
    cut = len(received) > MAX_BODY
    text = plain(received[:MAX_BODY])
    kind = response.headers.get("content-type", "")
    where = response.headers.get("location")
    lines = [f"{method} {url}", f"{response.status_code} {kind}".strip()]
    lines += [f"redirects to {where}"] if where else []
    lines += [text, f"[body cut at {MAX_BODY} bytes]" if cut else ""]
    data = {
        "status": response.status_code,
        "content_type": kind,
        "location": where,
        "body": text,
        "truncated": cut,
    }
    return ToolResult("\n".join(line for line in lines if line), data)


async def _checked(url: str, rules: HttpPolicy) -> Target:
    """Resolve the name once and judge the address that will be connected to."""
    parts, port = _parsed(url)
    host = parts.hostname or ""
    # a name that is only looked up already tells a stranger what it spells
    known = rules.anywhere or _is_local_name(host)
    address = await _loopback_address(host, port) if known else None
    if address is None:
        if not rules.anywhere:
            raise PolicyError(f"{host} is not this machine; run.http stays on it")
        return Target(url, parts.netloc)
    if port in rules.own_ports:
        raise PolicyError(f"port {port} is one of EverContext's own")
    shown = f"[{address}]" if ":" in address else address
    pinned = SplitResult(parts.scheme, f"{shown}:{port}", parts.path or "/", parts.query, "")
    return Target(pinned.geturl(), parts.netloc)


def _parsed(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise InvalidArguments(f"not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InvalidArguments("a URL is http:// or https://, a host and a path, without a user")
    return parts, port


def _is_local_name(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


async def _loopback_address(host: str, port: int) -> str | None:
    if host.endswith(".localhost"):
        host = "localhost"  # reserved for this machine; not every resolver knows
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = [str(entry[4][0]) for entry in found]
    local = [address for address in addresses if ipaddress.ip_address(address).is_loopback]
    if len(local) != len(addresses):
        return None  # a name that means both is not to be trusted
    return next((address for address in local if "." in address), local[0] if local else None)
