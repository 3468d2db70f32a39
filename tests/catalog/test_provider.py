"""The seam between gathering tools and finding the right one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.entry import Card
from evercontext.catalog.provider import LocalSearch, SearchProvider
from evercontext.catalog.tools import Catalog
from evercontext.domain.caller_scope import Scope
from evercontext.domain.tool import Caller
from evercontext.errors import ServerProblem
from evercontext.events.log import EventLog
from evercontext.events.redaction import Redactor
from evercontext.tools.toolbox import Toolbox
from tests.catalog.world import EVERYBODY, caller, odd, servers


class Alphabet:
    """A provider of somebody else: by name, and tired at times."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], list[str], int, str | None]] = []
        self.tired = False

    async def search(
        self, queries: Sequence[str], cards: Sequence[Card], limit: int, context: str | None
    ) -> list[dict[str, Any]]:
        self.asked.append((list(queries), [card.key for card in cards], limit, context))
        if self.tired:
            raise ServerProblem("the alphabet is tired")
        chosen = sorted(cards, key=lambda card: card.name)[:limit]
        return [{**card.to_json(), "relevance": 1.0} for card in chosen]


@pytest.mark.contract("T24", "T25")
async def test_the_catalog_gathers_and_a_provider_searches(tmp_path: Path) -> None:
    alphabet = Alphabet()
    provider: SearchProvider = alphabet

    async def scope_of(caller: Caller) -> Scope:
        return EVERYBODY

    async def strategy_of(scope: Scope) -> str | None:
        return "alphabet"

    config = odd("one", tool_permissions={"fail": False})
    async with servers(tmp_path, config, odd("other", project="theirs")) as opened:
        catalog = Catalog(opened, scope_of, strategy_of, providers={"alphabet": provider})
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


@pytest.mark.contract("T25")
async def test_the_local_providers() -> None:
    cards = [Card("a:time", "a", "time", "Tell the time."), Card("a:rain", "a", "rain", "Will it?")]
    for strategy in ("hybrid", "bm25"):
        search = LocalSearch(strategy)
        first = await search.search(["what time is it"], cards, 1, None)
        assert [one["toolKey"] for one in first] == ["a:time"]
        assert await search.search(["what time is it"], cards, 1, None) == first
