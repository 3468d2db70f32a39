"""Search tools through another search service, within a time limit, known tools only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.errors import ServerProblem
from evercontext.process.certificates import certificates

SECONDS = 5.0
LARGEST_ANSWER = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CloudSearch:
    """``POST {url}``; sees names and descriptions, never a caller's token."""

    url: str
    token: str | None = field(default=None, repr=False)
    seconds: float = SECONDS

    async def search(
        self,
        queries: Sequence[str],
        entries: Sequence[CatalogEntry],
        limit: int,
        context: str | None,
    ) -> list[dict[str, Any]]:
        """Return results as discovery shows them; raise ``ServerProblem`` within the time."""
        request: dict[str, Any] = {
            "query": list(queries),
            "tools": [_described(entry) for entry in entries],
            "maxResults": limit,
        }
        if context:
            request["context"] = context
        try:
            async with asyncio.timeout(self.seconds):
                answer = await self._post(request)
        except TimeoutError:
            raise ServerProblem(f"cloud search took more than {self.seconds:g} s") from None
        results = answer.get("results") if isinstance(answer, dict) else None
        return known_results(results, entries, "cloud search")[:limit]

    async def _post(self, request: Mapping[str, Any]) -> Any:
        import httpx2

        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        trusted = await certificates()
        try:
            async with (
                httpx2.AsyncClient(follow_redirects=False, timeout=None, verify=trusted) as client,
                client.stream("POST", self.url, json=request, headers=headers) as answer,
            ):
                if answer.status_code != 200:
                    raise ServerProblem(f"cloud search answered with HTTP {answer.status_code}")
                body = bytearray()
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > LARGEST_ANSWER:
                        raise ServerProblem("cloud search answered with too much")
            return json.loads(body)
        except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
            reason = str(problem) or type(problem).__name__
            raise ServerProblem(f"cloud search cannot be reached: {reason[:200]}") from None
        except (ValueError, RecursionError):
            raise ServerProblem("cloud search answered with no JSON") from None


class NoCloud:
    """The provider where no address is set: it can only say so."""

    async def search(
        self,
        queries: Sequence[str],
        entries: Sequence[CatalogEntry],
        limit: int,
        context: str | None,
    ) -> list[dict[str, Any]]:
        """Raise ``ServerProblem``."""
        raise ServerProblem("no cloud search is set (EC_CATALOG_URL)")


def _described(entry: CatalogEntry) -> dict[str, str]:
    return {
        "toolKey": entry.key,
        "toolName": entry.name,
        "serverName": entry.server,
        "description": entry.description,
    }


def known_results(results: Any, entries: Sequence[CatalogEntry], name: str) -> list[dict[str, Any]]:
    """Keep what is about our tools, each once; everything but the order is ours."""
    if not isinstance(results, list):
        raise ServerProblem(f"{name} answered without results")
    by_key = {entry.key: entry for entry in entries}
    known = []
    for result in results:
        entry = by_key.pop(str(result.get("toolKey")), None) if isinstance(result, dict) else None
        if entry is not None:
            known.append({**entry.to_json(), **_judged(result)})
    return known


def _judged(result: Mapping[str, Any]) -> dict[str, Any]:
    number = result.get("relevance")
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    relevance = min(1.0, max(0.0, float(number))) if is_number else 0.0  # type: ignore[arg-type]
    return {"relevance": relevance, "explanation": str(result.get("explanation") or "")[:500]}
