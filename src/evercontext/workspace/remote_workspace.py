"""Use a gateway over HTTP as workspace; it applies its own policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from evercontext import errors
from evercontext.domain.tool import Caller
from evercontext.errors import (
    AlreadyExists,
    ConfigError,
    EverContextError,
    GatewayUnreachable,
    NotFound,
    NotUtf8,
    TooLarge,
)
from evercontext.files.directory_listing import DirectoryEntry, Listing
from evercontext.files.file_io import digest, encode
from evercontext.files.file_tree import FileText, WriteMode, Written
from evercontext.files.text_search import TextMatches
from evercontext.process.certificates import certificates

if TYPE_CHECKING:
    import httpx2

_Shape = TypeVar("_Shape")

SECONDS = 60.0
LARGEST_ANSWER = 16 * 1_048_576

_BY_STATUS: Mapping[int, type[EverContextError]] = {
    400: errors.PathRefused,
    401: errors.Unauthorized,
    403: errors.ProtectedPath,
    404: errors.NotFound,
    409: errors.AlreadyExists,
    413: errors.TooLarge,
    415: errors.NotUtf8,
    422: errors.InvalidArguments,
    507: errors.DiskFull,
}


class RemoteWorkspace:
    """A tree behind a gateway's REST routes. What the gateway does not offer, it says itself."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"EC_MCP_URL is not an address: {url!r}", fix="Use http://host:port")
        self._url = url.rstrip("/")
        self._token = token
        self._client: httpx2.AsyncClient | None = None

    @property
    def local(self) -> None:
        """Return None: the files are on another machine."""
        return None

    def caution(self, path: str) -> str | None:
        """Nothing: the gateway refuses what a person would have to approve."""
        return None

    def longest(self, caller: Caller) -> int | None:
        """What an answer may have is what a file may have: the gateway keeps its own limit."""
        return LARGEST_ANSWER

    async def list(
        self,
        path: str,
        caller: Caller,
        *,
        extensions: Sequence[str] | None = None,
        max_items: int | None = None,
        recursive: bool = False,
    ) -> Listing:
        """List a directory."""
        arguments: dict[str, Any] = {"path": path}
        if extensions is not None:
            arguments["extensions"] = list(extensions)
        if max_items is not None:
            arguments["max_items"] = max_items
        if recursive:
            arguments["recursive"] = True
        answer = await self._post("list_files", arguments, caller)
        return self._shaped(lambda: _listing(path, answer))

    async def read(self, path: str, caller: Caller) -> FileText:
        """Read a text file."""
        answer = await self._post("read_file", {"path": path}, caller)
        content = self._shaped(lambda: _text(answer["content"]))
        data = encode(content)
        return FileText(_plain(path), content, digest(data), len(data))

    async def search(self, directory: str, keyword: str, caller: Caller) -> TextMatches:
        """Find the files that contain a text."""
        arguments = {"directory": directory, "keyword": keyword}
        answer = await self._post("search_files", arguments, caller)
        return self._shaped(
            lambda: TextMatches(
                tuple(_text(path) for path in answer["result"]),
                bool(answer.get("truncated", False)),
            )
        )

    async def preview(
        self, path: str, content: str | None, mode: WriteMode, caller: Caller
    ) -> Written:
        """Return what a write (or, without content, a delete) would do, and do nothing."""
        before = await self._before(path, caller)
        if content is None and before is None:
            raise NotFound("no such file or directory")
        if before is not None and content is not None and mode is WriteMode.CREATE:
            raise AlreadyExists("file exists", fix="Edit it, or write in overwrite mode")
        return _written(path, before, _after(before, content, mode))

    async def write(
        self,
        path: str,
        content: str,
        mode: WriteMode,
        caller: Caller,
        *,
        if_match: str | None = None,
    ) -> Written:
        """Write a text file; what was there before is read first, to be shown."""
        before = None if mode is WriteMode.CREATE else await self._before(path, caller)
        arguments = {"path": path, "content": content, "mode": mode.value}
        if if_match is not None:
            arguments["if_match"] = if_match
        answer = await self._post("write_file", arguments, caller)
        done = self._shaped(lambda: _text(answer["path"]))
        return _written(done, before, _after(before, content, mode))

    async def delete(self, path: str, caller: Caller) -> Written:
        """Remove a file."""
        before = await self._before(path, caller)
        await self._post("delete_file", {"path": path}, caller)
        return _written(path, before, None)

    async def move(self, old: str, new: str, caller: Caller) -> tuple[Written, Written]:
        """Rename a file."""
        content = await self._before(old, caller)
        await self._post("move_file", {"path": old, "to": new}, caller)
        return _written(old, content, None), _written(new, None, content)

    async def aclose(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _before(self, path: str, caller: Caller) -> str | None:
        try:
            return (await self.read(path, caller)).content
        except NotFound:
            return None
        except (NotUtf8, TooLarge):
            # It may be replaced all the same; there is only nothing to show of it.
            return ""

    async def _post(self, route: str, arguments: Mapping[str, Any], caller: Caller) -> Any:
        headers = {"content-type": "application/json", "x-trace-id": caller.trace_id}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        body = json.dumps(arguments).encode()
        status, answer = await self._exchange(f"{self._url}/{route}", body, headers)
        try:
            parsed = json.loads(answer)
        except (ValueError, RecursionError):
            parsed = None
        if status != 200:
            raise _problem(route, status, parsed)
        if not isinstance(parsed, dict):
            raise self._strange()
        return parsed

    async def _exchange(
        self, url: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        import httpx2

        client = await self._opened()
        for attempt in (1, 2):
            try:
                async with client.stream("POST", url, content=body, headers=headers) as response:
                    return response.status_code, await _bounded(response)
            except httpx2.ConnectError as error:
                # Nothing was sent yet, so that asking again cannot do a thing twice.
                if attempt == 2:
                    raise self._unreachable(error) from error
            except httpx2.TransportError as error:
                raise self._unreachable(error) from error
        raise AssertionError("the second attempt returns or raises")

    async def _opened(self) -> httpx2.AsyncClient:
        import httpx2

        # Plain HTTP has no use for certificates.
        trusted = await certificates() if self._url.startswith("https:") else False
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=SECONDS, verify=trusted)
        return self._client

    def _unreachable(self, error: Exception) -> GatewayUnreachable:
        reason = str(error) or type(error).__name__
        return GatewayUnreachable(
            f"the gateway at {self._url} does not answer ({reason})",
            fix="Start it with `evercontext serve`, or unset EC_MCP_URL",
        )

    def _strange(self) -> GatewayUnreachable:
        return GatewayUnreachable(
            f"what answers at {self._url} is no gateway", fix="Check EC_MCP_URL"
        )

    def _shaped(self, build: Callable[[], _Shape]) -> _Shape:
        try:
            return build()
        except (KeyError, TypeError, ValueError):
            raise self._strange() from None


async def _bounded(response: httpx2.Response) -> bytes:
    answer = bytearray()
    async for chunk in response.aiter_bytes():
        answer += chunk
        if len(answer) > LARGEST_ANSWER:
            raise TooLarge(f"the gateway's answer is larger than {LARGEST_ANSWER} bytes")
    return bytes(answer)


def _problem(route: str, status: int, answer: Any) -> EverContextError:
    """The error the gateway met, as it would have been raised here."""
    problem = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(problem, dict) and isinstance(problem.get("code"), str):
        kind = errors.by_code(problem["code"])
        if kind is not EverContextError:
            return kind(str(problem.get("message", "the gateway refused")))
    detail = answer.get("detail") if isinstance(answer, dict) else None
    kind = _BY_STATUS.get(status, errors.IoFailed)
    return kind(f"the gateway refused {route} with {status}" + (f": {detail}" if detail else ""))


def _listing(path: str, answer: Mapping[str, Any]) -> Listing:
    entries = tuple(
        DirectoryEntry(_text(entry["name"]), bool(entry["is_dir"]), entry.get("size"))
        for entry in answer["files"]
    )
    return Listing(_plain(path), entries, bool(answer.get("truncated", False)))


def _after(before: str | None, content: str | None, mode: WriteMode) -> str | None:
    if content is not None and mode is WriteMode.APPEND:
        return (before or "") + content
    return content


def _written(path: str, before: str | None, after: str | None) -> Written:
    data = None if after is None else encode(after)
    return Written(
        _plain(path), before, after, None if data is None else digest(data), created=before is None
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is expected")
    return value


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."
