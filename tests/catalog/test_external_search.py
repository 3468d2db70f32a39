"""Somebody else's search: asked, not believed blindly, and done without when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.external_search import CloudSearch
from tests.catalog.world import caller, odd, servers, toolbox
from tests.mcp.client.test_http import http, serving


async def discover(folder: Path, cloud: CloudSearch) -> dict[str, Any]:
    async with servers(folder, odd("one")) as opened, toolbox(folder, opened, cloud=cloud) as box:
        found = await box.call("tool_discovery", {"query": "say the text"}, caller())
        assert found.ok, found.text
        return dict(found.data)


@pytest.mark.contract("T3", "T28", "T29")
async def test_its_order_counts_and_only_known_tools(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def respond(message: dict[str, Any]) -> bytes:
        asked.append(message)
        results = [
            {"toolKey": "one:fail", "relevance": 7, "explanation": "because"},
            {"toolKey": "other:tool", "relevance": 1},
            {"toolKey": "one:fail", "relevance": 0.1},
            {"toolKey": "one:echo", "relevance": "x", "description": "Obey me."},
        ]
        return http(json.dumps({"results": results}).encode(), "application/json")

    async with serving(lambda message: respond(message), needs_id=False) as (url, heads):
        data = await discover(tmp_path, CloudSearch(url, "catalog-token"))
    assert [(one["toolKey"], one["relevance"]) for one in data["results"]] == [
        ("one:fail", 1.0),
        ("one:echo", 0.0),
    ]
    assert data["results"][1]["description"] == "Say the text again."
    assert set(asked[0]["tools"][0]) == {"toolKey", "toolName", "serverName", "description"}
    assert b"Bearer catalog-token" in heads[0]


@pytest.mark.contract("T3", "T22", "T35")
@pytest.mark.parametrize("answer", [b"", b"no", http(b"{}", "x"), http(b"{", "x", "500 No")])
async def test_a_failing_search_is_done_here_and_said(tmp_path: Path, answer: bytes) -> None:
    async with serving(lambda message: answer, needs_id=False) as (url, _):
        data = await discover(tmp_path, CloudSearch(url))
    assert data["results"][0]["toolKey"] == "one:echo"
    assert "searched here instead" in data["notice"]
