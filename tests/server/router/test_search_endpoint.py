"""``POST /catalog/search``: our own side of the cloud search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from evercontext.access.access_tokens import Tokens
from evercontext.access.router_projects import Projects, RouterProject
from evercontext.catalog.external_search import CloudSearch
from evercontext.testing import write_script
from tests.catalog.world import EVERYBODY, odd
from tests.server.routed import Routed, routed

TOOLS = [
    {"toolKey": "clock:now", "toolName": "now", "serverName": "clock", "description": "The time."},
    {"toolKey": "sky:rain", "toolName": "rain", "serverName": "sky", "description": "Will it rain"},
]
ASKED: dict[str, Any] = {"query": ["what time is it"], "tools": TOOLS, "maxResults": 5}


async def search(router: Routed, body: Any, **headers: str) -> httpx2.Response:
    url = router.url.replace("/mcp", "/catalog/search")
    given = {"authorization": f"Bearer {router.token}", **headers}
    return await router.client.post(url, json=body, headers=given)


@pytest.mark.contract("T28")
async def test_a_model_picks_and_explains(tmp_path: Path) -> None:
    picks = {"picks": [{"tool": 1, "relevance": 0.9, "why": "it tells the time"}]}
    model = write_script(tmp_path / "script.jsonl", [{"text": json.dumps(picks)}])
    async with routed(tmp_path, catalog_model=model) as router:
        answer = (await search(router, ASKED)).json()
        assert answer["model"].startswith("scripted")
        assert answer["results"] == [
            {**TOOLS[0], "relevance": 0.9, "explanation": "it tells the time"}
        ]
        # The script is over: the next question is answered here, and says so.
        again = (await search(router, ASKED)).json()
        assert again["results"][0]["toolKey"] == "clock:now"
        assert "searched by words and meaning" in again["notice"]


@pytest.mark.contract("T22", "T28", "T29")
async def test_without_a_model_and_without_a_right(tmp_path: Path) -> None:
    async with routed(tmp_path, model_name="embedded:smollm2") as router:
        answer = (await search(router, ASKED)).json()
        assert answer["results"][0]["toolKey"] == "clock:now"
        assert "no model is configured" in answer["notice"]
        assert (await search(router, ASKED, authorization="Bearer wrong")).status_code == 401
        other = {"x-evercontext-project": "theirs"}
        assert (await search(router, ASKED, **other)).status_code == 403
        await Projects(router.app.store).put(RouterProject("theirs"))
        assert (await search(router, ASKED, **other)).status_code == 200
        narrow = await Tokens(router.app.store).create("narrow", projects=["mine"])
        bearer = {"authorization": f"Bearer {narrow}", **other}
        assert (await search(router, ASKED, **bearer)).status_code == 403
        seen = {(one["method"], one["status"]) for one in router.audit()}
        assert {("POST /catalog/search", code) for code in (200, 401, 403)} <= seen


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"query": [], "tools": []},
        {"query": [1], "tools": []},
        {"query": "x"},
        {"query": "x", "tools": [{"toolName": 1}]},
        {"query": "x", "tools": [], "maxResults": 0},
        {"query": "x", "tools": [], "context": 5},
        {"query": "x" * 5_000, "tools": []},
    ],
)
async def test_odd_questions_are_refused(tmp_path: Path, body: Any) -> None:
    async with routed(tmp_path) as router:
        answer = await search(router, body)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]


@pytest.mark.contract("T3", "T28", "T35")
async def test_one_router_asks_another(tmp_path: Path) -> None:
    async with routed(tmp_path, odd("one"), model_name="embedded:smollm2") as router:
        url = router.url.replace("/mcp", "/catalog/search")
        entries = await router.app.catalog.servers.gather(EVERYBODY, 20)
        cloud = CloudSearch(url, router.token)
        found = await cloud.search(["say the text"], entries, 1, None)
        assert [one["toolKey"] for one in found] == ["one:echo"]
        assert found[0]["inputSchema"]
