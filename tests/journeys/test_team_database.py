"""Everything on a PostgreSQL server: each package stores its rows there."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from evercontext.access.access_tokens import Tokens
from evercontext.access.approval_rules import parse
from evercontext.access.pending_approvals import Approvals
from evercontext.access.permissions import StoredRules
from evercontext.access.router_projects import Projects, RouterProject
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.storage.postgres import PostgresStore
from tests import postgres
from tests.cli.command import EVERCONTEXT, Ended, evercontext, home
from tests.server.running import Gateway, running


@pytest.fixture(scope="module")
def url() -> str:
    return postgres.new_database()


@pytest.mark.slow
def test_a_team_works_on_one_database(url: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    env = {"EC_DATABASE_URL": url}
    added = evercontext("memory", "add", "デプロイは金曜日に行う", cwd=project, env=env)
    assert added.code == 0, added.err
    call = {"path": "a.py", "content": "x = 1\n", "mode": "overwrite"}
    turns = [{"tool_calls": [{"name": "write_file", "arguments": call}]}, {"text": "done"}]
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    done = evercontext(
        "run", "--task", "write a.py", "--model", f"scripted:{script}", cwd=project, env=env
    )
    assert done.code == 0, done.err
    assert (project / "a.py").exists()
    found = evercontext("memory", "search", "いつデプロイしますか", cwd=project, env=env)
    assert "金曜日" in found.out
    assert "write a.py" in evercontext("memory", "list", cwd=project, env=env).out
    checked = evercontext("doctor", cwd=project, env=env)
    assert "postgresql://" in checked.out
    assert not (home() / "memory.db").exists()


@pytest.mark.case(122)
def test_a_database_that_is_away_is_named_without_its_password(tmp_path: Path) -> None:
    env = {"EC_DATABASE_URL": "postgresql://me:hunter2secret@127.0.0.1:9/none"}
    ended = evercontext("memory", "search", "anything", cwd=tmp_path, env=env)
    assert ended.code == 75
    assert "EC_DATABASE_URL" in ended.err
    queued = evercontext("memory", "add", "anything", cwd=tmp_path, env=env)
    assert "queued: PostgreSQL is away" in queued.err
    assert "hunter2secret" not in ended.err + ended.out + queued.err + queued.out
    files = [one for one in home().rglob("*") if one.is_file()]
    assert files
    assert all(b"hunter2secret" not in one.read_bytes() for one in files)


def test_an_address_that_the_server_does_not_know_is_told_apart_from_one_away(
    url: str, tmp_path: Path
) -> None:
    env = {"EC_DATABASE_URL": url.replace("/test_", "/mistyped_", 1)}
    ended = evercontext("memory", "search", "anything", cwd=tmp_path, env=env)
    assert (ended.code, "lets nobody in" in ended.err) == (75, True)
    assert "Correct the user, the password or the database" in ended.err
    told = evercontext("sessions", "list", "--json", cwd=tmp_path, env=env)
    assert "Check that the server" not in told.err


@pytest.mark.slow
@pytest.mark.case(123)
@pytest.mark.parametrize("shared", [True, False], ids=["server", "file"])
def test_a_database_of_a_newer_version_is_refused_at_every_door(
    shared: bool, tmp_path: Path
) -> None:
    address = postgres.new_database() if shared else ""
    env = {"EC_DATABASE_URL": address, "OPENAI_API_KEY": "k" * 20}
    assert evercontext("memory", "add", "Kept", cwd=tmp_path, env=env).code == 0
    newer = "INSERT INTO schema_migrations (version, name) VALUES (9999, 'later')"
    if shared:
        postgres.run(newer, urlsplit(address).path[1:])
    else:
        with closing(sqlite3.connect(home() / "memory.db")) as link, link:
            link.execute(newer)
    # Not taken for one that is away: nothing is queued for a program that may never understand it.
    for words in (["memory", "list"], ["memory", "add", "x"], ["run", "-t", "x"], ["chat"]):
        ended = evercontext(*words, cwd=tmp_path, env=env, stdin="")
        assert (ended.code, "Update evercontext" in ended.err) == (1, True), words


@pytest.mark.case(117)
def test_a_read_that_hangs_is_stopped_and_answered_with_503(tmp_path: Path) -> None:
    address = postgres.new_database()
    name = urlsplit(address).path[1:]
    with running(tmp_path / "root", tmp_path / "home", {"EC_DATABASE_URL": address}) as gateway:
        remembered = recalled(gateway, "remember", content="The heron nests here")
        assert "status" not in remembered
        with psycopg.connect(postgres.server().get_uri(name)) as link:
            link.execute("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
            stopped = recalled(gateway, "recall", query="heron")
            assert (stopped["status"], stopped["error"]["code"]) == (503, "store_timeout")
        found = recalled(gateway, "recall", query="heron")
        assert found["memories"][0]["content"] == "The heron nests here"


def recalled(gateway: Gateway, tool: str, **arguments: str) -> dict[str, Any]:
    """What a memory tool answers over MCP."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
        "accept": "application/json, text/event-stream",
    }
    answer = gateway.client.post("/mcp", json=call, headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["result"]["structuredContent"])


@pytest.mark.slow
@pytest.mark.case(116)
@pytest.mark.parametrize("shared", [True, False], ids=["server", "file"])
def test_no_syntax_breaks_a_search_at_the_door(shared: bool, tmp_path: Path) -> None:
    env = {"EC_DATABASE_URL": postgres.new_database()} if shared else {}
    with running(tmp_path / "root", tmp_path / "home", env) as gateway:
        recalled(gateway, "remember", content="a heron AND an eagle")
        for query in (
            '"',
            "AND",
            "(",
            "*",
            "NEAR(",
            "content:x",
            "a\0b",
            "'; DROP TABLE memories",
            "(" * 4_000,
            "x" * 4_000,
        ):
            assert "memories" in recalled(gateway, "recall", query=query), query[:20]
        assert recalled(gateway, "recall", query="y" * 100_000)["status"] == 422
        found = recalled(gateway, "recall", query="heron")
        assert found["memories"][0]["content"] == "a heron AND an eagle"


def kill_as_soon_as_something_is_stored(url: str, folder: Path) -> None:
    def stored() -> int:
        return int(postgres.run("SELECT count(*) FROM memories", urlsplit(url).path[1:])[0][0])

    before = stored()
    env = {**os.environ, "EC_DATABASE_URL": url}
    begun = subprocess.Popen(
        [EVERCONTEXT, "memory", "list"], cwd=folder, env=env, stdout=subprocess.DEVNULL
    )
    while begun.poll() is None and stored() == before:
        time.sleep(0.005)
    begun.kill()
    begun.wait()


@pytest.mark.slow
@pytest.mark.case(122)
def test_what_is_added_while_the_server_is_away_is_queued_then_stored_once(
    url: str, tmp_path: Path
) -> None:
    def memory(*words: str, stdin: str | None = None) -> Ended:
        env = {"EC_DATABASE_URL": url}
        return evercontext(*words, cwd=tmp_path, env=env, stdin=stdin)

    lines = [json.dumps({"id": f"turn-{n}", "content": f"Said as number {n}"}) for n in range(600)]
    assert memory("memory", "list").code == 0  # its tables are there, whichever test comes first
    with postgres.away():
        added = memory("memory", "add", "木曜日に公開する", "--json", "--user", "ann")
        assert (added.code, json.loads(added.out)["queued"]) == (75, True)
        dropped = memory("memory", "add", "Not this one")
        assert memory("memory", "forget", dropped.out.strip()).code == 0
        read = memory("memory", "import", "-", stdin="\n".join(lines))
        assert read.code == 75
        assert "queued: PostgreSQL is away; 600 memories kept here" in read.err
        assert memory("memory", "list").code == 75
        assert "not yet stored: 601" in memory("doctor").out
    for _ in range(3):
        kill_as_soon_as_something_is_stored(url, tmp_path)
    found = json.loads(memory("memory", "list", "--json", "-n", "10000").out)
    assert [one["id"] for one in reversed(found)] == [f"turn-{n}" for n in range(600)]
    assert {one["seen"] for one in found} == {1}
    assert "not yet stored" not in memory("doctor").out
    # It was queued first, and so it is the oldest.
    everything = json.loads(memory("memory", "list", "--json", "-n", "9999", "--user", "ann").out)
    assert (everything[-1]["content"], len(everything)) == ("木曜日に公開する", 601)


async def test_every_room_keeps_its_rows_there(url: str) -> None:
    store = await PostgresStore.open(url)
    try:
        await Projects(store).put(RouterProject("p", "/srv/p", optimization=None))
        assert (await Projects(store).get("p")).optimization is None
        server = ServerConfig("s", ("run", "me"), enabled=False, tool_permissions={"a": False})
        await ServerTable(store).put(server)
        assert await ServerTable(store).get("s") == server
        secret = await Tokens(store).create("t", projects=["p"])
        assert await Tokens(store).check(secret) is not None
        rules = StoredRules(store, "/srv/p")
        await rules.add(parse("allow", "write_file(src/**)"))
        await rules.add(parse("deny", "write_file(src/**)"))
        assert [rule.text for rule in await rules.all()] == ["write_file(src/**)"]
        asked = await Approvals(store).ask("t", "/srv/p", "run_command", {"command": "ls"})
        assert [one.id for one in await Approvals(store).pending("/srv/p")] == [asked.id]
        assert await Approvals(store).answer(asked.id, asked.nonce, allowed=True, by="ann")
    finally:
        await store.close()
