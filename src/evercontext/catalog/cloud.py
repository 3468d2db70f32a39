"""Tools looked for by somebody else's search: asked briefly, believed only about known tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evercontext.catalog.entry import CatalogEntry
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
        asked: dict[str, Any] = {
            "query": list(queries),
            "tools": [_told(entry) for entry in entries],
            "maxResults": limit,
        }
        if context:
            asked["context"] = context
        try:
            async with asyncio.timeout(self.seconds):
                answer = await self._post(asked)
        except TimeoutError:
            raise ServerProblem(f"cloud search took more than {self.seconds:g} s") from None
        return _known(answer, entries)[:limit]

    async def _post(self, asked: Mapping[str, Any]) -> Any:
        import httpx2

        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        trusted = await certificates()
        try:
            async with (
                httpx2.AsyncClient(follow_redirects=False, timeout=None, verify=trusted) as client,
                client.stream("POST", self.url, json=asked, headers=headers) as answer,
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
            said = str(problem) or type(problem).__name__
            raise ServerProblem(f"cloud search cannot be reached: {said[:200]}") from None
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


def _told(entry: CatalogEntry) -> dict[str, str]:
    return {
        "toolKey": entry.key,
        "toolName": entry.name,
        "serverName": entry.server,
        "description": entry.description,
    }


def _known(answer: Any, entries: Sequence[CatalogEntry]) -> list[dict[str, Any]]:
    """Keep what is about our tools, each once; everything but the order is ours."""
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise ServerProblem("cloud search answered without results")
    by_key = {entry.key: entry for entry in entries}
    kept = []
    for one in results:
        entry = by_key.pop(str(one.get("toolKey")), None) if isinstance(one, dict) else None
        if entry is not None:
            kept.append({**entry.to_json(), **_judged(one)})
    return kept


def _judged(one: Mapping[str, Any]) -> dict[str, Any]:
    given = one.get("relevance")
    number = isinstance(given, int | float) and not isinstance(given, bool)
    relevance = min(1.0, max(0.0, float(given))) if number else 0.0  # type: ignore[arg-type]
    return {"relevance": relevance, "explanation": str(one.get("explanation") or "")[:500]}
