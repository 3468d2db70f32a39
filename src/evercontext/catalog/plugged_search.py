"""Search tools with other packages: the entry point ``evercontext.search`` names a provider.

Its value is a function that takes the settings and returns a ``SearchProvider``, or an awaitable of
one. Only the order of its results counts: a tool that the caller may not use is left out.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evercontext import plugins
from evercontext.access.router_projects import OWN_SEARCHES
from evercontext.catalog.external_search import known_results
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.errors import ConfigError, ServerProblem

if TYPE_CHECKING:
    from evercontext.catalog.search_provider import SearchProvider
    from evercontext.settings import Settings

SECONDS = 5.0


def installed_searches() -> list[str]:
    """Return the names under which installed packages offer a search."""
    return sorted(set(plugins.installed("search")) - {*OWN_SEARCHES, "null"})


class PluggedSearch:
    """A provider of an installed package, loaded when it is first needed."""

    def __init__(self, name: str, settings: Settings, seconds: float = SECONDS) -> None:
        self._name, self._settings, self._seconds = name, settings, seconds
        self._provider: SearchProvider | None = None

    async def search(
        self,
        queries: Sequence[str],
        entries: Sequence[CatalogEntry],
        limit: int,
        context: str | None,
    ) -> list[dict[str, Any]]:
        """Return the provider's results; whatever goes wrong in it is a ``ServerProblem``."""
        try:
            async with asyncio.timeout(self._seconds):
                self._provider = self._provider or await self._open()
                results = await self._provider.search(queries, entries, limit, context)
        except (ServerProblem, ConfigError) as problem:
            raise ServerProblem(str(problem)) from problem
        except TimeoutError:
            raise ServerProblem(
                f"the search {self._name} took more than {self._seconds:g} s"
            ) from None
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"[:200]
            raise ServerProblem(f"the search {self._name} failed ({reason})") from problem
        return known_results(results, entries, f"the search {self._name}")[:limit]

    async def _open(self) -> SearchProvider:
        points = await asyncio.to_thread(plugins.installed, "search")
        if self._name not in points:
            raise ServerProblem(f"no installed package offers the search {self._name}")
        opener = await asyncio.to_thread(plugins.load, points[self._name])
        opened = opener(self._settings)
        provider: SearchProvider = await opened if inspect.isawaitable(opened) else opened
        return provider
