"""Send JSON over HTTPS to OpenAI and Anthropic, and read their server-sent events.

Both vendors' SDKs do the same over the same client; they are 60 MB of types for two requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from evercontext.errors import BadReply, ModelProblem, ModelUnavailable, ModelUnknown
from evercontext.models.connection_errors import unreachable
from evercontext.models.provider_errors import Provider
from evercontext.models.unknown_models import near_names
from evercontext.process.certificates import certificates
from evercontext.settings import process_environment

if TYPE_CHECKING:
    import httpx2

_CONNECT = 10.0
_LARGEST_ERROR = 64 * 1024
LARGEST_REPLY = 64 * 1024 * 1024
"""Bytes of one answer; a server that sends more has no answer but a flood."""
TOO_MUCH = f"the model's server sent more than {LARGEST_REPLY >> 20} MiB in one answer"
_LONGEST_LINE = 16 * 1024 * 1024


class Refusal(Exception):
    """What a server answered instead of what was asked for."""

    def __init__(
        self, status: int, message: str, kind: str, param: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
        """The parameter that it is about, where the server says so."""
        self.headers = headers

    @property
    def status_code(self) -> int:
        """The status, by the name that vendors' clients have for it."""
        return self.status


class VendorHttp:
    """One vendor's server."""

    def __init__(self, provider: Provider, headers: Mapping[str, str], seconds: float) -> None:
        self._provider = provider
        self._headers = dict(headers)
        self._seconds = seconds
        self._client: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def get(self, path: str) -> dict[str, Any]:
        """Return the answer to a GET request."""
        return await self._request("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole answer to a POST request."""
        return await self._request("POST", path, body)

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        import httpx2

        try:
            client = await self._connected()
            async with client.stream(method, path, json=body) as response:
                content = await _some(response, LARGEST_REPLY)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.problem(error) from error
        if len(content) > LARGEST_REPLY:
            raise BadReply(TOO_MUCH)
        if response.status_code >= 400:
            raise _refusal(response.status_code, content, response.headers)
        return self._object(content.decode("utf-8", "replace"))

    @asynccontextmanager
    async def events(
        self, path: str, body: Mapping[str, Any]
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Open a stream of JSON events; raises Refusal before the first one."""
        import httpx2

        try:
            client = await self._connected()
            async with client.stream("POST", path, json=body) as response:
                if response.status_code >= 400:
                    raise _refusal(response.status_code, await _some(response), response.headers)
                yield self._events(response)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise self.problem(error) from error
        except ValueError as error:
            raise self._no_protocol() from error

    async def _events(self, response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
        data: list[str] = []
        async for line in lines_of(response):
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                text, data = "\n".join(data), []
                if text.strip() == "[DONE]":
                    return
                yield self._checked(self._object(text))
        if data and "".join(data).strip() != "[DONE]":
            # Some servers end without the blank line that closes an event.
            yield self._checked(self._object("\n".join(data)))

    def _checked(self, event: dict[str, Any]) -> dict[str, Any]:
        """An error may come in the middle of a stream, where the status was given long ago."""
        error = event.get("error")
        if error:
            raise _refusal(0, json.dumps(event).encode(), {})
        return event

    def _object(self, text: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._no_protocol() from error
        if not isinstance(value, dict):
            raise self._no_protocol()
        return value

    def _no_protocol(self) -> ModelProblem:
        return self._provider.unavailable("sent something that is not its protocol")

    def refused(self, refusal: Refusal) -> ModelProblem:
        """Return the error that a refusal means."""
        return self._provider.refused(
            refusal.status, refusal.message, kind=refusal.kind, headers=refusal.headers
        )

    async def explained(self, refusal: Refusal) -> ModelProblem:
        """Return the error that a refusal means, with similar names where the model is unknown."""
        problem = self.refused(refusal)
        if isinstance(problem, ModelUnknown):
            name = f"{self._provider.name}:{self._provider.model}"
            if near := await asyncio.to_thread(near_names, name, self._provider.name):
                fix = f"Models of {self._provider.name} with such names: {', '.join(near)}"
                return ModelUnknown(problem.message, fix=fix)
        return problem

    def problem(self, error: Exception) -> ModelProblem:
        """Return the error that a failed connection means."""
        import httpx2

        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            where = unreachable(self._provider.address, process_environment())
            return ModelUnavailable(
                f"{self._provider.name}: {where}", fix="Check the network and the address"
            )
        if isinstance(error, httpx2.TimeoutException):
            return self._provider.unavailable(f"said nothing for {self._seconds:.0f} s")
        if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
            return self._provider.unavailable(f"has no valid address: {self._provider.address}")
        return self._provider.unavailable("cannot be reached, or cut the line")

    async def _connected(self) -> httpx2.AsyncClient:
        trusted = await certificates()
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                base_url=self._provider.address,
                headers=self._headers,
                timeout=httpx2.Timeout(self._seconds, connect=min(_CONNECT, self._seconds)),
                follow_redirects=True,
                verify=trusted,
            )
        return self._client


async def lines_of(response: httpx2.Response) -> AsyncIterator[str]:
    """Yield the lines of an answer as they come; only a newline ends one.

    ``aiter_lines`` also ends them at U+2028 and the like, which JSON may hold as they are.
    """
    rest, size = b"", 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_REPLY:
            raise BadReply(TOO_MUCH)
        *complete, rest = (rest + part).split(b"\n")
        for line in complete:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
        if len(rest) > _LONGEST_LINE:
            raise ValueError("a line without an end")
    if rest:
        yield rest.decode("utf-8", "replace")


def vendor_headers(vendor: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that a vendor's variables ask for, as its own programs read them."""
    headers: dict[str, str] = {}
    for line in environment.get(f"{vendor}_CUSTOM_HEADERS", "").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip():
            headers[name.strip()] = value.strip()
    named = {"ORG_ID": "OpenAI-Organization", "PROJECT_ID": "OpenAI-Project"}
    for suffix, header in named.items() if vendor == "OPENAI" else ():
        if chosen := environment.get(f"{vendor}_{suffix}"):
            headers[header] = chosen
    return headers


async def _some(response: httpx2.Response, most: int = _LARGEST_ERROR) -> bytes:
    """Read a body, not more of it than an error has, or a little more than ``most``."""
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > most:
            break
    return bytes(content)


def _refusal(status: int, content: bytes, headers: Mapping[str, str]) -> Refusal:
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return Refusal(status, str(error or text), "", "", headers)
    kind = str(error.get("code") or error.get("type") or "")
    message = error.get("message")
    shown = message if isinstance(message, str) and message else json.dumps(error)
    return Refusal(status, shown, kind, str(error.get("param") or ""), headers)
