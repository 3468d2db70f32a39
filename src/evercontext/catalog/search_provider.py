"""Define the interface of tool search, between the catalog and each way to search.

A provider gets the entries that the caller may use and gives results as discovery shows them. The
local ones are here; one over HTTP is in ``cloud``, one that asks a model in ``picking``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from evercontext.catalog.tool_entry import CatalogEntry

if TYPE_CHECKING:
    from evercontext.catalog.tool_search import ToolSearch

_KEPT_SEARCHES = 4
Results = list[dict[str, Any]]


class SearchProvider(Protocol):
    """Anything that can say which of some tools do what is asked."""

    async def search(
        self,
        queries: Sequence[str],
        entries: Sequence[CatalogEntry],
        limit: int,
        context: str | None,
    ) -> Results:
        """Return the best, best first; raise ``ServerProblem`` if it cannot."""
        ...


class LocalSearch:
    """Words and meaning, on this machine; what was built for a list of entries is kept a while."""

    def __init__(self, strategy: str = "hybrid") -> None:
        self._strategy = strategy
        self._searches: list[ToolSearch] = []

    async def search(
        self,
        queries: Sequence[str],
        entries: Sequence[CatalogEntry],
        limit: int,
        context: str | None,
    ) -> Results:
        """Return the best, best first."""
        matches = self._over(tuple(entries)).search(queries, limit, context=context)
        return [
            {
                **match.entry.to_json(),
                "relevance": match.relevance,
                "explanation": match.explanation,
            }
            for match in matches
        ]

    def _over(self, entries: tuple[CatalogEntry, ...]) -> ToolSearch:
        from evercontext.catalog.tool_search import Strategy, ToolSearch

        for search in self._searches:
            if search.entries == entries:
                return search
        search = ToolSearch(entries, Strategy(self._strategy))
        self._searches = [search, *self._searches[: _KEPT_SEARCHES - 1]]
        return search
