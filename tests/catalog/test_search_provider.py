"""The seam between gathering tools and finding the right one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evercontext.access.router_projects import Projects
from evercontext.catalog.search_provider import LocalSearch, SearchProvider
from evercontext.catalog.tool_entry import CatalogEntry
from evercontext.errors import ServerProblem
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.storage.sqlite import SqliteStore
from evercontext.tools.toolbox import Toolbox
from tests.catalog.world import ScopedCatalog, caller, odd, servers


class Alphabet:
    """A provider of somebody else: by name, and tired at times."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], list[str], int, str | None]] = []
        self.tired = False

    async def search(
        self,
        queries: Sequence[str],
        entries: Sequence[CatalogEntry],
        limit: int,
        context: str | None,
    ) -> list[dict[str, Any]]:
        self.asked.append((list(queries), [entry.key for entry in entries], limit, context))
        if self.tired:
            raise ServerProblem("the alphabet is tired")
        chosen = sorted(entries, key=lambda entry: entry.name)[:limit]
        return [{**entry.to_json(), "relevance": 1.0} for entry in chosen]


@pytest.mark.contract("T24", "T25")
async def test_the_catalog_gathers_and_a_provider_searches(tmp_path: Path) -> None:
    alphabet = Alphabet()
    provider: SearchProvider = alphabet

    config = odd("one", tool_permissions={"fail": False})
    async with servers(tmp_path, config, odd("other", project="theirs")) as opened:
        store = await SqliteStore.open(tmp_path / "house.db")
        catalog = ScopedCatalog(opened, Projects(store), providers={"alphabet": provider})
        catalog.search = "alphabet"
        box = Toolbox(catalog.tools(), EventLog(tmp_path / "traces", Redactor([])))
        asked = {"query": "x", "maxResults": 1, "context": "why"}
        found = await box.call("tool_discovery", asked, caller())
        assert [one["toolKey"] for one in found.data["results"]] == ["one:echo"]
        # It gets what this caller may use, and nothing else.
        assert alphabet.asked == [(["x"], ["one:echo", "one:environment"], 1, "why")]
        alphabet.tired = True
        local = await box.call("tool_discovery", {"query": "say the text"}, caller())
        assert local.data["results"][0]["toolKey"] == "one:echo"
        assert local.data["notice"] == "the alphabet is tired: searched here instead"
        await store.close()


@pytest.mark.contract("T25")
async def test_the_local_providers() -> None:
    entries = [
        CatalogEntry("a:time", "a", "time", "Tell the time."),
        CatalogEntry("a:rain", "a", "rain", "Will it?"),
    ]
    for strategy in ("hybrid", "bm25"):
        search = LocalSearch(strategy)
        first = await search.search(["what time is it"], entries, 1, None)
        assert [one["toolKey"] for one in first] == ["a:time"]
        assert await search.search(["what time is it"], entries, 1, None) == first
