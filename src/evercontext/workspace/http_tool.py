"""Send one request to a server on this machine, or elsewhere if allowed (``run.http``)."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from evercontext.domain.tool import Arguments, Caller, Effect, Tool, ToolResult
from evercontext.errors import InvalidArguments, PolicyError, ToolProblem, ToolTimeout
from evercontext.process.certificates import certificates
from evercontext.workspace.check_counts import plain
from evercontext.workspace.parameter_schema import choice, integer, parameters, string

MAX_BODY = 1024 * 1024
MAX_SENT = 1024 * 1024
DEFAULT_SECONDS = 10
LONGEST_SECONDS = 60
MARKER = "x-evercontext-run-http"
"""Says that a model sends this. A call cannot take it away, and our servers refuse it, also those
that this machine does not know of."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """Where requests may go."""

    anywhere: bool = False
    own_ports: Callable[[], Collection[int]] = frozenset
    """EverContext's own servers as they are now: a model must not answer its own approvals there,
    nor work in another project through them."""


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
    headers = {"host": target.host, "accept-encoding": "identity", MARKER: "1"}
    headers["user-agent"] = "EverContext run.http"
    if body:
        headers["content-type"] = arguments.get("content_type", "application/json")
    method = arguments.get("method", "GET")
    trusted = await certificates(trust_env=False)
    try:
        async with (
            httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=None, verify=trusted
            ) as client,
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
    parts, port = parse_url(url)
    host = parts.hostname or ""
    # a name that is only looked up already tells a stranger what it spells
    known = rules.anywhere or _is_local_name(host)
    addresses = await _addresses(host, port) if known else []
    here = [address for address in addresses if _is_this_machine(address)]
    if not here:
        if not rules.anywhere:
            raise PolicyError(f"{host} is not this machine; run.http stays on it")
        return Target(url, parts.netloc)
    if len(here) < len(addresses):
        raise PolicyError(f"{host} means this machine and another; run.http takes one that is sure")
    if port in await asyncio.to_thread(rules.own_ports):
        raise PolicyError(f"port {port} is one of EverContext's own")
    address = next((address for address in here if "." in address), here[0])
    shown = f"[{address}]" if ":" in address else address
    pinned = SplitResult(parts.scheme, f"{shown}:{port}", parts.path or "/", parts.query, "")
    return Target(pinned.geturl(), parts.netloc)


def parse_url(url: str) -> tuple[SplitResult, int]:
    """Return the parts of an HTTP address and its port; refuse a user name in it."""
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
        address = ipaddress.ip_address(host)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


async def _addresses(host: str, port: int) -> list[str]:
    if host.endswith(".localhost"):
        host = "localhost"  # reserved for this machine; not every resolver knows
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in entries]


def _is_this_machine(address: str) -> bool:
    """True for loopback by every name, and for each address that this machine has."""
    plain = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(plain, "ipv4_mapped", None) or plain
    if mapped.is_loopback or mapped.is_unspecified:
        return True
    family = socket.AF_INET if mapped.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Only an address of our own can be bound.
            probe.bind((str(mapped), 0))
    except OSError:
        return False
    return True
