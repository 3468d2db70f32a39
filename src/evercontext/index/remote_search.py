"""Search through a server elsewhere (``EC_RAG_URL``), with the same tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evercontext import errors
from evercontext.domain.event import Evidence
from evercontext.domain.tool import Arguments, Caller, Run, Tool, ToolResult
from evercontext.errors import ConfigError, GatewayUnreachable
from evercontext.events.log import EventLog
from evercontext.index.location import LONGEST_KEPT
from evercontext.process.certificates import certificates

if TYPE_CHECKING:
    import httpx2

ROUTES = {"search_code": "/search", "ingest": "/ingest", "prune": "/prune"}
_SECONDS = 60.0


class RemoteIndex:
    """An index behind REST routes."""

    def __init__(self, url: str, token: str | None = None, events: EventLog | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"EC_RAG_URL is not an address: {url!r}", fix="Use http://host:port")
        self._url = url.rstrip("/")
        self._token = token
        self._events = events
        self._client: httpx2.AsyncClient | None = None

    def adopt(self, tools: list[Tool]) -> list[Tool]:
        """Return the same tools, run at the server."""
        return [replace(tool, run=self._runner(ROUTES[tool.name]), audited=False) for tool in tools]

    async def aclose(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _runner(self, route: str) -> Run:
        async def run(arguments: Arguments, caller: Caller) -> ToolResult:
            data = await self._post(route, arguments, caller.trace_id)
            if route == "/search":
                self._note(arguments["query"], data, caller)
                return ToolResult(_as_text(data), data, hits=len(data.get("chunks", ())))
            return ToolResult(_as_text(data), data)

        return run

    def _note(self, query: str, data: dict[str, Any], caller: Caller) -> None:
        if self._events:
            chunks = data.get("chunks", [])
            body = Evidence(
                query=query[:LONGEST_KEPT],
                paths=tuple(str(chunk.get("path")) for chunk in chunks),
                scores=tuple(float(chunk.get("score", 0)) for chunk in chunks),
            )
            self._events.emit(body, trace_id=caller.trace_id, parent=caller.parent)

    async def ask(self, tool: str, arguments: Arguments, trace_id: str) -> dict[str, Any]:
        """Return what the server answers to one call."""
        return await self._post(ROUTES[tool], arguments, trace_id)

    async def _post(self, route: str, arguments: Arguments, trace_id: str) -> dict[str, Any]:
        import httpx2

        trusted = await certificates(trust_env=False)
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=_SECONDS, trust_env=False, verify=trusted)
        headers = {"x-trace-id": trace_id}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            answer = await self._client.post(
                self._url + route, json=dict(arguments), headers=headers
            )
        except httpx2.HTTPError as problem:
            raise GatewayUnreachable(
                f"{self._url} does not answer ({type(problem).__name__})",
                fix="Start it, or unset EC_RAG_URL",
            ) from problem
        return _checked(answer.status_code, answer.content)


def _checked(status: int, content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        data = None
    if status == 200 and isinstance(data, dict):
        return data
    reply = data.get("error") if isinstance(data, dict) else None
    if isinstance(reply, dict):
        raise errors.by_code(str(reply.get("code")))(str(reply.get("message")))
    raise GatewayUnreachable(f"the search server answered {status}", fix="Check EC_RAG_URL")


def _as_text(data: dict[str, Any]) -> str:
    if "chunks" not in data:
        return json.dumps(data, ensure_ascii=False)
    parts = [f"{c.get('path')}:{c.get('span')}\n{c.get('text')}" for c in data["chunks"]]
    if isinstance(covered := data.get("coverage"), dict):
        counts = f"{covered.get('indexed')} of {covered.get('files')} files"
        parts += [f"(The index there holds {counts} so far. Ask again for a better answer.)"]
    return "\n\n".join(parts if data["chunks"] else ["Nothing found.", *parts])
