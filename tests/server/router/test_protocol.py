"""The router in both eras of the protocol: greetings, lists, progress, and calls taken back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evercontext.catalog.server_log import read_log
from evercontext.mcp import revisions
from evercontext.mcp.server.http import Refused
from evercontext.mcp.server.response_stream import MOST_PENDING_PROGRESS
from evercontext.server.router.authentication import RouterSessions
from tests.catalog.world import odd
from tests.server.routed import REAL, Routed, routed


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines]


@pytest.mark.contract("T7")
async def test_clients_that_shake_hands(tmp_path: Path) -> None:
    async with routed(tmp_path, odd("one")) as router:
        for version in revisions.HANDSHAKE_REVISIONS:
            answer = await router.post("initialize", {"protocolVersion": version})
            assert answer.json()["result"]["protocolVersion"] == version
            assert answer.headers["mcp-session-id"]
        future = await router.ask("initialize", protocolVersion="2099-01-01")
        assert future["protocolVersion"] == revisions.HANDSHAKE_REVISIONS[0]
        assert await router.ask("ping") == {}
        done = await router.post("notifications/initialized", {}, id=None)
        assert done.status_code == 202


@pytest.mark.contract("T7")
async def test_clients_without_a_handshake(tmp_path: Path) -> None:
    async with routed(tmp_path, odd("one")) as router:
        found = (await router.stateless("server/discover")).json()["result"]
        assert found["resultType"] == "complete"
        assert revisions.STATELESS_REVISION in found["supportedVersions"]
        tools = (await router.stateless("tools/list")).json()["result"]
        assert [tool["name"] for tool in tools["tools"]] == ["tool_discovery", "tool_execute"]
        assert tools["cacheScope"] == "private"
        call = {"toolKey": "one:echo", "arguments": {"text": "やあ"}}
        answer = await router.stateless("tools/call", name="tool_execute", arguments=call)
        result = answer.json()["result"]
        assert result["resultType"] == "complete"
        assert result["content"] == [{"type": "text", "text": "やあ"}]
        assert "structuredContent" not in result


@pytest.mark.contract("T7")
async def test_a_server_asks_its_client_back(tmp_path: Path) -> None:
    call = {"toolKey": "shy:echo", "arguments": {"text": "x"}}
    async with routed(tmp_path, odd("shy", "asks-back")) as router:
        asked = (await router.stateless("tools/call", name="tool_execute", arguments=call)).json()
        assert asked["result"]["resultType"] == "input_required"
        assert asked["result"]["requestState"] == "half"
        question = asked["result"]["inputRequests"]["who"]
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "Whose name?"
        given = {"who": {"action": "accept", "content": {"text": "愛子"}}}
        again = {"arguments": call, "inputResponses": given, "requestState": "half"}
        done = (await router.stateless("tools/call", name="tool_execute", **again)).json()["result"]
        assert done["resultType"] == "complete"
        said = done["content"][0]["text"]
        assert json.loads(said) == ["half", given]
        memo = {"uri": "evercontext://shy/memo://x"}
        for method, params in (("resources/read", memo), ("prompts/get", {"name": "shy:greet"})):
            asked = (await router.stateless(method, **params)).json()["result"]
            assert asked["resultType"] == "input_required"
            back = {**params, "inputResponses": given, "requestState": "half"}
            done = (await router.stateless(method, **back)).json()["result"]
            assert done["resultType"] == "complete"
            assert "half" in json.dumps(done)
            refused = (await router.post(method, params)).json()
            assert "cannot be asked" in refused["error"]["message"]
        # A client that shook hands has no way to be asked.
        refused = await router.ask("tools/call", name="tool_execute", arguments=call)
        assert refused["isError"]
        assert "cannot be asked" in refused["content"][0]["text"]


@pytest.mark.parametrize(
    ("meta", "headers", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, {}, -32602),
        ({}, {"mcp_protocol_version": "2026-07-28"}, -32602),
        ({}, {"mcp_protocol_version": "2031-01-01"}, -32022),
        (None, {"mcp_protocol_version": "2025-06-18"}, -32020),
        (None, {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call"}, -32020),
    ],
)
async def test_an_envelope_that_contradicts_itself(
    tmp_path: Path, meta: dict[str, Any] | None, headers: dict[str, str], code: int
) -> None:
    whole = {revisions.VERSION_KEY: "2026-07-28", revisions.CAPABILITIES_KEY: {}}
    async with routed(tmp_path) as router:
        params = {"_meta": whole if meta is None else meta}
        answer = await router.post("tools/list", params, **headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == code


@pytest.mark.case(84)
async def test_a_session_is_its_tokens_alone(tmp_path: Path) -> None:
    async with routed(tmp_path) as router:
        answer = await router.post("initialize", {})
        session = answer.headers["mcp-session-id"]
        assert (await router.post("tools/list", {}, mcp_session_id=session)).status_code == 200
        theirs = router.app.settings
        assert theirs is not None
        sessions = RouterSessions()
        other = sessions.issue("somebody")
        with pytest.raises(Refused, match="another token's") as refusal:
            sessions.check(other, "else")
        assert refusal.value.status == 403
        sessions.check(other, "somebody")
        sessions.check(sessions.issue(None), "anybody")
        gone = await router.post("tools/list", {}, mcp_session_id=other)
        assert gone.status_code == 404


@pytest.mark.contract("T9", "T37")
async def test_resources_and_prompts_of_every_server(tmp_path: Path) -> None:
    async with routed(tmp_path, REAL, odd("one")) as router:
        await warm(router)
        listed = (await router.ask("resources/list"))["resources"]
        assert [one["uri"] for one in listed] == ["evercontext://real/memo://today"]
        read = await router.ask("resources/read", uri=listed[0]["uri"])
        assert read["contents"][0]["text"] == "buy milk"
        assert read["contents"][0]["uri"] == listed[0]["uri"]
        # C4: and under the name that a link in a result gives it.
        linked = await router.ask("resources/read", uri="memo://today")
        assert linked["contents"][0]["text"] == "buy milk"
        templates = (await router.ask("resources/templates/list"))["resourceTemplates"]
        template = templates[0]["uriTemplate"]
        assert template == "evercontext://real/memo://day/{day}"
        day = await router.ask("resources/read", uri=template.replace("{day}", "monday"))
        assert day["contents"][0]["text"] == "on monday: nothing"
        prompts = (await router.ask("prompts/list"))["prompts"]
        assert [one["name"] for one in prompts] == ["real:greet"]
        filled = await router.ask("prompts/get", name="real:greet", arguments={"name": "Aiko"})
        assert filled["messages"][0]["content"]["text"] == "Say hello to Aiko."
        for method, params in (
            ("resources/read", {"uri": "evercontext://nobody/memo://today"}),
            ("resources/read", {"uri": "gone://today"}),
            ("prompts/get", {"name": "nobody:greet"}),
        ):
            answer = await router.post(method, params)
            assert answer.json()["error"]["code"] == -32602
        seen = [(one["method"], one["server"]) for one in router.audit() if one["server"]]
        assert ("resources/read", "real") in seen


@pytest.mark.contract("T5")
async def test_only_tools_are_discovered(tmp_path: Path) -> None:
    async with routed(tmp_path, REAL) as router:
        await warm(router)
        asked = {"query": ["what is to be done today", "greet somebody"], "maxResults": 100}
        done = await router.ask("tools/call", name="tool_discovery", arguments=asked)
        keys = {one["toolKey"] for one in json.loads(done["content"][0]["text"])["results"]}
        assert {key for key in keys if key.startswith("real:")} <= {"real:add", "real:count"}


async def warm(router: Routed) -> None:
    """Wait until the real server runs: it starts slowly on a busy machine."""
    call = {"toolKey": "real:add", "arguments": {"a": 1, "b": 2}}
    done = await router.ask("tools/call", name="tool_execute", arguments=call)
    assert done["content"][0]["text"] == "3"


async def count(router: Routed, to: int, **headers: str) -> Any:
    call = {"toolKey": "real:count", "arguments": {"to": to}}
    params = {"name": "tool_execute", "arguments": call, "_meta": {"progressToken": "mine"}}
    return await router.post("tools/call", params, **headers)


async def test_progress_reaches_the_client(tmp_path: Path) -> None:
    async with routed(tmp_path, REAL) as router:
        answer = await count(router, 3, accept="application/json, text/event-stream")
        assert answer.headers["content-type"] == "text/event-stream"
        *told, last = events(answer.text)
        assert [one["params"]["progress"] for one in told] == [1, 2, 3]
        assert {one["params"]["progressToken"] for one in told} == {"mine"}
        assert "counted to 3" in last["result"]["content"][0]["text"]
        plain = await count(router, 2, accept="application/json")
        assert plain.headers["content-type"] == "application/json"
        assert MOST_PENDING_PROGRESS > 3
        lines = [one for one in router.audit() if one["server"] == "real"]
        assert [one["status"] for one in lines] == [200, 200]


async def test_a_client_that_goes_away_takes_its_call_back(tmp_path: Path) -> None:
    async with routed(tmp_path, odd("slow", "cancel")) as router:
        call = {"toolKey": "slow:echo", "arguments": {"text": "x"}}
        params = {"name": "tool_execute", "arguments": call}
        asking = asyncio.create_task(router.post("tools/call", params))
        await _until_said(router, "called")
        asking.cancel()
        await _until_said(router, "cancelled")


async def test_a_call_is_taken_back_in_words(tmp_path: Path) -> None:
    async with routed(tmp_path, odd("slow", "cancel")) as router:
        session = (await router.post("initialize", {})).headers["mcp-session-id"]
        call = {"toolKey": "slow:echo", "arguments": {"text": "x"}}
        params = {"name": "tool_execute", "arguments": call}
        asking = asyncio.create_task(
            router.post("tools/call", params, id=12, mcp_session_id=session)
        )
        await _until_said(router, "called")
        await router.post("notifications/cancelled", {"requestId": 12}, id=None)
        assert not asking.done()
        told = {"requestId": 12}
        await router.post("notifications/cancelled", told, id=None, mcp_session_id=session)
        await _until_said(router, "cancelled")
        asking.cancel()


async def _until_said(router: Routed, word: str) -> None:
    """Wait until the server has said this on stderr."""
    for _ in range(3_000):
        lines = read_log(router.app.settings.home / "servers", "slow")
        if any(line.endswith(word) for line in lines):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"the server never said {word}")


async def test_what_nobody_offers(tmp_path: Path) -> None:
    async with routed(tmp_path) as router:
        answer = await router.post("sampling/createMessage", {})
        assert answer.json()["error"]["code"] == -32601
        modern = await router.stateless("tasks/list")
        assert (modern.status_code, modern.json()["error"]["code"]) == (404, -32601)
