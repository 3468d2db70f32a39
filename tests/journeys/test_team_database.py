"""The whole house on a PostgreSQL server: every room that keeps something keeps it there."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from evercontext.access.approvals import Approvals
from evercontext.access.permissions import StoredRules
from evercontext.access.projects import Projects, RouterProject
from evercontext.access.rules import parse
from evercontext.access.tokens import Tokens
from evercontext.catalog.server_table import ServerConfig, ServerTable
from evercontext.storage.postgres import PostgresStore
from tests import postgres
from tests.cli.command import EVERCONTEXT, Ended, evercontext, home


@pytest.fixture(scope="module")
def url() -> str:
    return postgres.new_database()


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


@pytest.mark.case(122)
def test_what_is_added_while_the_server_is_away_is_queued_then_stored_once(
    url: str, tmp_path: Path
) -> None:
    def memory(*words: str, stdin: str | None = None) -> Ended:
        env = {"EC_DATABASE_URL": url}
        return evercontext(*words, cwd=tmp_path, env=env, stdin=stdin)

    lines = [json.dumps({"id": f"turn-{n}", "content": f"Said as number {n}"}) for n in range(600)]
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
