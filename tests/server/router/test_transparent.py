"""The router passes on what servers say as they say it, by both ways to call a tool."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evercontext.access.access_tokens import Tokens
from evercontext.access.router_projects import Projects, RouterProject
from evercontext.catalog.server_log import read_log
from evercontext.catalog.server_table import ServerConfig
from evercontext.errors import ConfigError, NotFound
from tests.catalog.rich_server import DEFINITION, MEMOS, SHOWN
from tests.catalog.world import RICH_SERVER
from tests.server.routed import Routed, routed

RICH = ServerConfig("rich", (sys.executable, str(RICH_SERVER)))
STREAM = "application/json, text/event-stream"


@asynccontextmanager
async def opened(folder: Path, *, direct: bool) -> AsyncIterator[Routed]:
    """A router before the rich server, as a client with or without optimisation sees it."""
    async with routed(folder, RICH) as router:
        if direct:
            await Projects(router.app.store).put(RouterProject("plain", optimization=None))
            router.headers["x-evercontext-project"] = "plain"
        yield router


def call_of(tool: str, direct: bool) -> dict[str, Any]:
    if direct:
        return {"name": f"rich__{tool}", "arguments": {}}
    return {"name": "tool_execute", "arguments": {"toolKey": f"rich:{tool}", "arguments": {}}}


def events(text: str) -> list[dict[str, Any]]:
    lines = [line for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.parametrize("direct", [False, True])
async def test_content_passes_as_it_is(tmp_path: Path, direct: bool) -> None:
    """C4, P10: images, audio, links, embedded resources, structured content, ``_meta``."""
    async with opened(tmp_path, direct=direct) as router:
        assert await router.ask("tools/call", **call_of("show", direct)) == SHOWN
        repeated = await router.ask("tools/call", **call_of("repeat", direct))
        assert ("structuredContent" in repeated) is direct
        assert repeated["content"] == [{"type": "text", "text": '{"a": 1}'}]


@pytest.mark.parametrize("direct", [False, True])
async def test_links_in_results_are_readable(tmp_path: Path, direct: bool) -> None:
    """C4: a link came through as its server wrote it, and reading it found nothing."""
    async with opened(tmp_path, direct=direct) as router:
        shown = await router.ask("tools/call", **call_of("show", direct))
        link, embedded = shown["content"][3]["uri"], shown["content"][4]["resource"]["uri"]
        for uri in (link, embedded):
            read = await router.ask("resources/read", uri=uri)
            assert read["contents"] == [{"uri": uri, "text": MEMOS[uri]}]
        answer = (await router.post("resources/read", {"uri": "memo://other"})).json()
        assert "memo://other" in answer["error"]["message"]


async def test_a_link_is_readable_after_the_router_was_started_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, direct=False) as router:
        read = await router.ask("resources/read", uri="memo://today")
        assert read["contents"] == [{"uri": "memo://today", "text": "buy milk"}]


@pytest.mark.parametrize("direct", [False, True])
async def test_an_error_of_a_server_keeps_code_and_data(tmp_path: Path, direct: bool) -> None:
    """P10: it became a result without code and data."""
    async with opened(tmp_path, direct=direct) as router:
        answer = (await router.post("tools/call", call_of("wrong", direct))).json()
        expected = {"code": -32042, "message": "no such 町", "data": {"tried": ["a"]}}
        assert answer["error"] == expected


async def test_what_is_too_long_is_bounded(tmp_path: Path) -> None:
    """P10: three megabytes of structured content reached the model."""
    async with opened(tmp_path, direct=True) as router:
        answer = await router.post("tools/call", call_of("long", True))
        assert len(answer.content) < 210_000
        assert "left out" in answer.json()["result"]["content"][-1]["text"]


async def test_definitions_pass_as_they_are(tmp_path: Path) -> None:
    """C4: output schema, title and annotations were dropped."""
    async with opened(tmp_path, direct=True) as router:
        tools = {tool["name"]: tool for tool in (await router.ask("tools/list"))["tools"]}
        assert tools["rich__show"] == {**DEFINITION, "name": "rich__show"}
        own = tools["evercontext__read_file"]
        assert own["annotations"]["readOnlyHint"] is True


async def test_the_two_tools_have_titles_and_hints(tmp_path: Path) -> None:
    """P11: clients that run unattended refuse a tool without a hint."""
    async with routed(tmp_path) as router:
        discovery, execute = (await router.ask("tools/list"))["tools"]
        assert discovery["annotations"]["readOnlyHint"] is True
        assert execute["annotations"]["readOnlyHint"] is False
        assert discovery["title"]
        assert execute["title"]


async def test_an_argument_is_completed_by_its_server(tmp_path: Path) -> None:
    """C8: completion was not relayed."""
    async with routed(tmp_path, RICH) as router:
        for reference, own in (
            ({"type": "ref/prompt", "name": "rich:greet"}, "greet"),
            ({"type": "ref/resource", "uri": "evercontext://rich/memo://{day}"}, "memo://{day}"),
        ):
            argument = {"name": "who", "value": "愛"}
            done = await router.ask("completion/complete", ref=reference, argument=argument)
            assert done["completion"]["values"] == [own, "愛"]
        unknown = {"type": "ref/prompt", "name": "nobody:greet"}
        params = {"ref": unknown, "argument": argument}
        answer = await router.post("completion/complete", params)
        assert answer.json()["error"]["code"] == -32602


async def session_of(router: Routed, **capabilities: Any) -> str:
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
    return str((await router.post("initialize", params)).headers["mcp-session-id"])


async def test_log_messages_reach_the_client_of_the_call(tmp_path: Path) -> None:
    """P10: log notifications were not relayed, and levels not passed on."""
    async with routed(tmp_path, RICH) as router:
        session = await session_of(router)
        params, headers = call_of("log", False), {"mcp_session_id": session, "accept": STREAM}
        answer = await router.post("tools/call", params, **headers)
        *told, last = events(answer.text)
        assert [one["params"]["level"] for one in told] == ["debug", "error"]
        assert told[0]["params"]["data"] == {"at": "debug"}
        assert last["result"]["content"][0]["text"] == "logged"
        await router.post("logging/setLevel", {"level": "error"}, mcp_session_id=session)
        answer = await router.post("tools/call", params, **headers)
        assert [one["params"]["level"] for one in events(answer.text)[:-1]] == ["error"]
        log = read_log(router.app.settings.home / "servers", "rich")
        assert any("logging/setLevel" in line and "error" in line for line in log)
        wrong = await router.post("logging/setLevel", {"level": "loud"}, mcp_session_id=session)
        assert wrong.json()["error"]["code"] == -32602


async def test_a_server_asks_the_client_whose_call_it_is(tmp_path: Path) -> None:
    """P10: a question of a server is put to that client, if it said that it can be asked."""
    async with routed(tmp_path, RICH) as router:
        session = await session_of(router, elicitation={})
        headers = {"authorization": f"Bearer {router.token}", "mcp-session-id": session}
        body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call_of("ask", False)}
        answer: dict[str, Any] = {}
        async with router.client.stream(
            "POST", router.url, json=body, headers={**headers, "accept": STREAM}
        ) as response:
            async for line in response.aiter_lines():
                for message in events(line):
                    if message.get("method") == "elicitation/create":
                        assert message["params"]["message"] == "Whose?"
                        result = {"action": "accept", "content": {"who": "愛子"}}
                        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                        posted = await router.client.post(router.url, json=reply, headers=headers)
                        assert posted.status_code == 202
                    else:
                        answer = message
        assert "accept" in answer["result"]["content"][0]["text"]
        silent = await session_of(router)
        refused = await router.post(
            "tools/call", call_of("ask", False), mcp_session_id=silent, accept=STREAM
        )
        assert "does not offer" in refused.text


async def test_a_followed_resource_tells_of_its_updates(tmp_path: Path) -> None:
    """P10: ``resources/subscribe`` was not relayed."""
    async with routed(tmp_path, RICH) as router:
        session = await session_of(router)
        address = {"uri": "evercontext://rich/memo://today"}
        await router.post("resources/subscribe", address, mcp_session_id=session)
        told = await told_while_updated(router, session)
        assert told == [{"method": "notifications/resources/updated", "params": address}]
        await router.post("resources/unsubscribe", address, mcp_session_id=session)
        refused = await router.post("resources/subscribe", {"uri": "evercontext://x/y"})
        assert refused.json()["error"]["code"] == -32602


async def told_while_updated(router: Routed, session: str) -> list[dict[str, Any]]:
    """What the session's stream brings when the server updates its resource."""
    headers = {"authorization": f"Bearer {router.token}", "mcp-session-id": session}
    stream = {**headers, "accept": "text/event-stream"}
    async with router.client.stream("GET", router.url, headers=stream) as response:
        assert response.status_code == 200
        await router.post("tools/call", call_of("update", False))
        async for line in response.aiter_lines():
            if told := events(line):
                return [{key: one[key] for key in ("method", "params")} for one in told]
    return []


async def test_a_session_ends_when_its_client_says_so(tmp_path: Path) -> None:
    async with routed(tmp_path) as router:
        session = await session_of(router)
        headers = {"authorization": f"Bearer {router.token}", "mcp-session-id": session}
        assert (await router.client.delete(router.url, headers=headers)).status_code == 200
        gone = await router.post("tools/list", {}, mcp_session_id=session)
        assert gone.status_code == 404


async def test_a_lost_stream_is_taken_up_where_it_was_lost(tmp_path: Path) -> None:
    """P16: no resumption by Last-Event-ID."""
    async with routed(tmp_path, RICH) as router:
        session = await session_of(router, elicitation={})
        headers = {
            "authorization": f"Bearer {router.token}",
            "mcp-session-id": session,
            "mcp-protocol-version": "2025-11-25",
        }
        body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call_of("ask", False)}
        question: dict[str, Any] = {}
        last_id = ""
        async with router.client.stream(
            "POST", router.url, json=body, headers={**headers, "accept": STREAM}
        ) as response:
            async for line in response.aiter_lines():
                last_id = line.removeprefix("id: ") if line.startswith("id: ") else last_id
                if found := events(line):
                    question = found[0]
                    break
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        await router.client.post(router.url, json=reply, headers=headers)
        resumed = {**headers, "accept": "text/event-stream", "last-event-id": last_id}
        answer = await router.client.get(router.url, headers=resumed)
        (last,) = events(answer.text)
        assert last["id"] == 3
        assert "decline" in last["result"]["content"][0]["text"]


async def test_methods_that_the_stateless_revision_removed(tmp_path: Path) -> None:
    """P16: they were answered with 200."""
    async with routed(tmp_path) as router:
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
            answer = await router.stateless(method)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601), method


async def test_servers_start_when_a_client_comes(tmp_path: Path) -> None:
    """C3: the first discovery missed servers that were still starting, and said nothing."""
    mark = tmp_path / "go"
    slow = ServerConfig("rich", (sys.executable, str(RICH_SERVER), str(mark)))
    async with routed(tmp_path, slow) as router:
        await router.post("initialize", {"capabilities": {}})
        found = await discovered(router)
        assert "rich is still starting" in found["notice"]
        mark.touch()
        while "notice" in found:
            await asyncio.sleep(0.05)
            found = await discovered(router)
        assert found["results"][0]["toolKey"] == "rich:show"


async def test_a_direct_call_waits_for_its_own_server_alone(tmp_path: Path) -> None:
    """C3: it said that there is no such tool, and waited for servers that it does not need."""
    mark = tmp_path / "go"
    slow = ServerConfig("slow", (sys.executable, str(RICH_SERVER), str(mark)))
    gone = ServerConfig("gone", (str(tmp_path / "nothing"),))
    async with routed(tmp_path, slow, RICH, gone) as router:
        await Projects(router.app.store).put(RouterProject("plain", optimization=None))
        router.headers["x-evercontext-project"] = "plain"
        waiting = asyncio.create_task(router.ask("tools/call", name="slow__show", arguments={}))
        assert await router.ask("tools/call", **call_of("show", True)) == SHOWN
        assert not waiting.done()
        mark.touch()
        assert await waiting == SHOWN
        problem = await router.post("tools/call", {"name": "gone__show", "arguments": {}})
        assert problem.json()["error"]["code"] == -32602
        assert "gone: " in problem.json()["error"]["message"]


async def discovered(router: Routed) -> dict[str, Any]:
    call = {"query": "show every kind of content"}
    done = await router.ask("tools/call", name="tool_discovery", arguments=call)
    return dict(json.loads(done["content"][0]["text"]))


async def test_a_tool_is_described_on_demand(tmp_path: Path) -> None:
    """C5: the schema of every result was sent, whether anybody needed it or not."""
    async with routed(tmp_path, RICH) as router:
        await router.ask("tools/call", **call_of("show", False))
        call = {"toolKeys": ["rich:show", "nobody:show"]}
        done = await router.ask("tools/call", name="tool_discovery", arguments=call)
        (described,) = json.loads(done["content"][0]["text"])["results"]
        assert described["inputSchema"] == DEFINITION["inputSchema"]
        neither = await router.ask("tools/call", name="tool_discovery", arguments={})
        assert neither["isError"]


async def test_a_revoked_token_is_told_so(tmp_path: Path) -> None:
    """C6: it was told that a token is needed."""
    async with routed(tmp_path) as router:
        await Tokens(router.app.store).revoke("test")
        answer = await router.post("tools/list", {})
        assert answer.status_code == 401
        assert "the token 'test' was revoked" in answer.json()["error"]["message"]
        router.token = "evc_nobody"
        unknown = await router.post("tools/list", {})
        assert "a token is needed" in unknown.json()["error"]["message"]


async def test_a_project_is_removed_when_it_is_empty(tmp_path: Path) -> None:
    """C6: there was no way to remove one."""
    async with routed(tmp_path, replace(RICH, project="web")) as router:
        projects = Projects(router.app.store)
        await projects.put(RouterProject("web"))
        with pytest.raises(ConfigError, match="still has servers: rich"):
            await projects.remove("web")
        await router.app.catalog.servers.table.remove("rich")
        await projects.remove("web")
        assert await projects.all() == []
        with pytest.raises(NotFound):
            await projects.remove("web")
