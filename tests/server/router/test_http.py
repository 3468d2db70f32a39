"""The tool router over HTTP: tokens, projects, and the official client."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from evercontext.testing import git, tiny_repository
from tests.catalog.world import ODD_SERVER
from tests.cli.command import EVERCONTEXT, evercontext, home
from tests.tiers import slow


@contextmanager
def routing(folder: Path, **env: str) -> Iterator[str]:
    """A running router, and its address."""
    command = [EVERCONTEXT, "serve", "--only", "router"]
    with subprocess.Popen(
        command, cwd=folder, env={**os.environ, **env}, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        try:
            said = ""
            for line in server.stderr:
                said += line
                if line.startswith("Ctrl-C"):
                    break
            found = re.search(r"router +(http://\S+)", said)
            assert found, said
            yield found[1]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(15)


def add(name: str, *options: str) -> None:
    done = evercontext(
        "servers", "add", name, *options, "--", sys.executable, str(ODD_SERVER), "good"
    )
    assert done.code == 0, done.err


def token(name: str, *options: str) -> str:
    return evercontext("tokens", "create", name, *options).out.strip()


class Client:
    """Raw JSON-RPC over HTTP."""

    def __init__(self, url: str, secret: str | None = None, project: str | None = None) -> None:
        self._url = url
        self._headers = {"authorization": f"Bearer {secret}"} if secret else {}
        if project is not None:
            self._headers["x-evercontext-project"] = project

    def ask(self, method: str, /, **params: Any) -> tuple[int, dict[str, Any]]:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        answer = httpx2.post(self._url, json=body, headers=self._headers, timeout=60)
        return answer.status_code, answer.json()

    def call(self, name: str, /, _meta: Any = None, **arguments: Any) -> dict[str, Any]:
        status, answer = self.ask("tools/call", name=name, arguments=arguments, _meta=_meta or {})
        assert status == 200, answer
        return dict(answer["result"])

    def found(self, query: str, _meta: Any = None) -> set[str]:
        result = self.call("tool_discovery", _meta, query=query)
        keys = {one["toolKey"] for one in json.loads(result["content"][0]["text"])["results"]}
        return {key for key in keys if not key.startswith("evercontext:")}


def reads(client: Client) -> bool:
    """True if our own tools show and change this root, whichever way they are asked for."""
    own = [
        one["toolKey"]
        for one in json.loads(
            client.call("tool_discovery", query="read a file")["content"][0]["text"]
        )["results"]
        if one["toolKey"].startswith("evercontext:")
    ]
    written = {"path": "a.txt", "content": "mine now", "mode": "overwrite"}
    outcomes = {
        "isError" not in done or not done["isError"]
        for done in (
            client.call(
                "tool_execute", toolKey="evercontext:read_file", arguments={"path": "a.txt"}
            ),
            client.call("tool_execute", toolKey="evercontext:write_file", arguments=written),
        )
    }
    assert len(outcomes | {bool(own)}) == 1, (own, outcomes)
    return outcomes == {True}


@pytest.mark.slow
def test_a_remote_that_is_added_meanwhile_is_the_project_s_name_at_once(tmp_path: Path) -> None:
    """F4: the router kept the old name until it was started again, and found nothing there."""
    place = tiny_repository(tmp_path / "app", {"a.txt": "b"})
    evercontext("projects", "create", "here", "--path", str(place))
    with routing(place) as url:
        client = Client(url, token("any"), "here")

        def own(tool: str, **arguments: str) -> str:
            done = client.call("tool_execute", toolKey=f"evercontext:{tool}", arguments=arguments)
            return str(done["content"])

        assert "Kept as" in own("remember", content="Herons nest here")
        git(place, "remote", "add", "origin", "git@git.example:team/app.git")
        assert "Herons nest here" in evercontext("memory", "list", cwd=place).out
        assert "Herons nest here" in own("recall", query="Where do herons nest?")
        git(place, "remote", "remove", "origin")
        git(place, "remote", "add", "origin", "git@git.example:team/other.git")
        assert "Herons" not in own("recall", query="Where do herons nest?")


@pytest.mark.contract("T26")
@pytest.mark.parametrize("bound", [True, slow(False)])
@pytest.mark.slow
def test_our_own_tools_are_bound_by_the_scope_of_a_token(tmp_path: Path, bound: bool) -> None:
    """C2, X6: a token for one server or another project read, overwrote and deleted files."""
    (tmp_path / "a.txt").write_text("theirs")
    add("mine")
    evercontext("projects", "create", "here", *(["--path", str(tmp_path)] if bound else []))
    evercontext("projects", "create", "there")
    secrets = {
        "any": token("any"),
        "server": token("server", "--server", "mine"),
        "own": token("own", "--server", "evercontext"),
        "here": token("here", "--project", "here"),
        "there": token("there", "--project", "there"),
    }
    with routing(tmp_path) as url:
        assert not reads(Client(url, secrets["server"]))
        assert not reads(Client(url, secrets["there"]))
        assert not reads(Client(url, secrets["there"], "there"))
        assert reads(Client(url, secrets["any"], "there")) is not bound
        assert (tmp_path / "a.txt").read_text() == ("theirs" if bound else "mine now")
        assert reads(Client(url, secrets["here"], "here")) is bound
        assert reads(Client(url, secrets["here"])) is bound
        assert reads(Client(url, secrets["own"]))
        assert reads(Client(url, secrets["any"]))
        evercontext("servers", "disable", "evercontext")
        assert not reads(Client(url, secrets["any"]))


@pytest.mark.slow
@pytest.mark.contract("T4", "T7", "T16", "T17", "T19", "T26", "T27", "T32", "T34", "T36")
@pytest.mark.case(82)
@pytest.mark.case(84)
def test_token_and_project_decide_what_is_there(tmp_path: Path) -> None:
    add("free")
    add("mine", "--project", "mine")
    add("theirs", "--project", "theirs")
    for project in ("mine", "theirs"):
        evercontext("projects", "create", project)
    wide, narrow = token("wide"), token("narrow", "--project", "mine", "--server", "mine")
    with routing(tmp_path) as url:
        for client in (Client(url), Client(url, "ec_wrong")):
            status, answer = client.ask("tools/list")
            assert (status, answer["error"]["code"]) == (401, -32001)
        assert Client(url, narrow, "theirs").ask("tools/list")[0] == 403
        assert Client(url, narrow, "nowhere").ask("tools/list")[0] == 403
        listed = Client(url, wide).ask("tools/list")[1]["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["tool_discovery", "tool_execute"]
        say = "say the text"
        assert "free:echo" in Client(url, wide).found(say)
        assert not _any(Client(url, wide), "mine")
        assert not _any(Client(url, wide, "__unassigned__"), "mine")
        assert _any(Client(url, wide, "theirs"), "theirs")
        assert not _any(Client(url, wide, "theirs"), "mine")
        assert {key.split(":")[0] for key in Client(url, narrow, "mine").found(say)} == {"mine"}
        inside = {"token": narrow, "projectId": "mine"}
        assert "mine:echo" in Client(url).found(say, inside)
        done = Client(url, narrow, "mine").call(
            "tool_execute", toolKey="mine:echo", arguments={"text": "やあ"}
        )
        content = [{"type": "text", "text": "やあ"}]
        assert done == {"content": content, "isError": False}
        hidden = Client(url, narrow, "mine").call("tool_execute", toolKey="theirs:echo")
        nothing = Client(url, narrow, "mine").call("tool_execute", toolKey="nobody:echo")
        assert str(hidden).replace("theirs", "nobody")[:90] == str(nothing)[:90]
        evercontext("tokens", "revoke", "narrow")
        assert Client(url, narrow, "mine").ask("tools/list")[0] == 401
    audited = [one for one in _audit() if one["method"] == "tool_execute" and one["status"] == 200]
    assert [(one["principal"], one["server"], one["request_id"]) for one in audited] == [
        ("narrow", "mine", "7")
    ]
    looked = [one for one in _audit() if one["method"] == "tool_discovery"]
    assert {one["request_id"] for one in looked} == {"7"}
    assert {one["principal"] for one in looked} == {"wide", "narrow"}
    everything = b"".join(path.read_bytes() for path in (home() / "traces").glob("*.jsonl"))
    assert wide.encode() not in everything
    assert narrow.encode() not in everything


def _any(client: Client, server: str) -> bool:
    return any(key.startswith(f"{server}:") for key in client.found("say the text"))


def _audit() -> list[dict[str, Any]]:
    lines = []
    for segment in sorted((home() / "traces").glob("*.jsonl")):
        for line in segment.read_text().splitlines():
            event = json.loads(line)
            if event["type"] == "audit":
                lines.append(event["data"])
    return lines


@pytest.mark.slow
@pytest.mark.contract("T21")
def test_without_optimisation_every_tool_is_listed(tmp_path: Path) -> None:
    add("free")
    evercontext("projects", "create", "plain", "--optimization", "null")
    secret = token("wide")
    with routing(tmp_path) as url:
        client = Client(url, secret, "plain")
        names = [tool["name"] for tool in client.ask("tools/list")[1]["result"]["tools"]]
        assert {"free__echo", "evercontext__read_file"} <= set(names)
        nothing = client.call("tool_discovery", query="say")
        assert json.loads(nothing["content"][0]["text"]) == {"results": []}
        done = client.call("free__echo", text="direct")
        assert done["content"] == [{"type": "text", "text": "direct"}]


@pytest.mark.contract("T17")
@pytest.mark.slow
def test_the_house_may_be_left_open(tmp_path: Path) -> None:
    add("free")
    with routing(tmp_path, EC_ROUTER_OPEN="1") as url:
        assert "free:echo" in Client(url).found("say the text")
    refused = evercontext(
        "serve", "--only", "router", "--host", "0.0.0.0", env={"EC_ROUTER_OPEN": "1"}, cwd=tmp_path
    )
    assert refused.code == 1
    assert "EC_ROUTER_OPEN" in refused.err


@pytest.mark.contract("T7")
async def test_the_official_client_talks_to_it(tmp_path: Path) -> None:
    from mcp import Client as Official

    add("free")
    with routing(tmp_path, EC_ROUTER_OPEN="1") as url:
        async with Official(url) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "tool_discovery",
                "tool_execute",
            ]
            call = {"toolKey": "free:echo", "arguments": {"text": "x"}}
            done = await client.call_tool("tool_execute", call)
            assert done.content[0].text == "x"  # type: ignore[union-attr]


def test_over_stdio_the_two_are_shown(tmp_path: Path) -> None:
    add("free")
    lines: list[dict[str, Any]] = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {
            "id": 3,
            "method": "tools/call",
            "params": {
                "name": "tool_execute",
                "arguments": {"toolKey": "free:echo", "arguments": {"text": "x"}},
            },
        },
    ]
    sent = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    done = evercontext("mcp", "--router", stdin=sent, cwd=tmp_path)
    answers = {one["id"]: one["result"] for one in map(json.loads, done.out.splitlines())}
    assert [t["name"] for t in answers[2]["tools"]] == ["tool_discovery", "tool_execute"]
    assert answers[3]["content"][0]["text"] == "x"


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[1]", 400), (b'{"jsonrpc":"2.0","method":"notifications/x"}', 202)],
)
def test_what_is_no_request(tmp_path: Path, body: bytes, status: int) -> None:
    with routing(tmp_path) as url:
        assert httpx2.post(url, content=body, timeout=60).status_code == status
        assert httpx2.get(url, timeout=60).status_code == 405
        assert (
            httpx2.post(url, headers={"origin": "http://evil.invalid"}, timeout=60).status_code
            == 403
        )
        assert httpx2.post(url.replace("/mcp", "/x"), timeout=60).status_code == 404
