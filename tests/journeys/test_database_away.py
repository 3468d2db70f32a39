"""The database server is away: every door opens all the same, and what is said arrives later."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from evercontext.access.approval_rules import parse
from evercontext.access.permissions import StoredRules
from evercontext.storage.postgres import PostgresStore
from tests import postgres
from tests.cli.command import EVERCONTEXT, Ended, evercontext, home
from tests.server.running import running

pytestmark = pytest.mark.case(122)
WARNING = "what you say is kept here and delivered when it is back"


@pytest.fixture
def url() -> str:
    return postgres.new_database()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def script(folder: Path, *turns: dict[str, Any]) -> str:
    path = folder / f"model-{len(list(folder.iterdir()))}.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path}"


def write(path: str) -> dict[str, Any]:
    call = {"path": path, "content": "x = 1\n", "mode": "overwrite"}
    return {"tool_calls": [{"name": "write_file", "arguments": call}]}


def flat(text: str) -> str:
    return " ".join(text.split())


def rows(url: str, sql: str) -> list[Any]:
    return postgres.run(sql, urlsplit(url).path[1:])


def wait_for(url: str, table: str, condition: str) -> list[Any]:
    """Rows that will be there; the table itself may not be yet."""
    while not (
        rows(url, f"SELECT 1 WHERE to_regclass('{table}') IS NOT NULL")
        and (found := rows(url, f"SELECT * FROM {table} WHERE {condition}"))
    ):
        time.sleep(0.05)
    return found


@pytest.mark.slow
@pytest.mark.contract("N36")
def test_a_chat_goes_on_and_is_stored_when_the_server_is_back(
    url: str, project: Path, tmp_path: Path
) -> None:
    def command(*words: str, stdin: str | None = None) -> Ended:
        return evercontext(*words, cwd=project, env={"EC_DATABASE_URL": url}, stdin=stdin)

    before = script(tmp_path, {"text": "answer zero"})
    assert command("chat", "-m", before, stdin="question zero\n").code == 0
    with postgres.away():
        model = script(tmp_path, {"text": "答え一"}, {"text": "answer two"})
        talked = command("chat", "-m", model, stdin="質問一\nquestion two\n/resume\n")
        assert talked.code == 0, talked.err
        # At the start, and where somebody looks for what is missing.
        assert flat(talked.out).count(WARNING) == 2
        assert "no other session" not in talked.out
        assert "答え一" in talked.out
        assert "answer two" in talked.out
        # It can be taken up again, though the server has never heard of it.
        more = script(tmp_path, {"text": "answer three"})
        again = command("chat", "-c", "-m", more, stdin="question three\n")
        assert (again.code, "answer three" in again.out) == (0, True)
        listed = command("sessions", "list")
        assert listed.code == 75
        assert "質問一" in listed.out
        assert "past sessions, memories and outside servers are missing" in listed.err
        old = command("chat", "-r", "1", "-m", more, stdin="x\n")
        assert (old.code, "is not among the sessions kept here" in old.err) == (75, True)
        assert command("memory", "search", "anything").code == 75
    listed = command("sessions", "list")
    assert (listed.code, len(listed.out.splitlines())) == (0, 2)
    told = rows(url, "SELECT content FROM messages ORDER BY id")
    assert [one[0] for one in told] == [
        "question zero",
        "answer zero",
        "質問一",
        "答え一",
        "question two",
        "answer two",
        "question three",
        "answer three",
    ]
    assert rows(url, "SELECT 1 FROM sessions WHERE ended_at IS NULL") == []
    assert "not yet stored" not in command("doctor").out


@pytest.mark.slow
async def test_a_run_keeps_to_the_rules_it_knew(url: str, project: Path, tmp_path: Path) -> None:
    env = {"EC_DATABASE_URL": url}
    store = await PostgresStore.open(url)
    await StoredRules(store, str(project)).add(parse("deny", "write_file(kept/**)"))
    await store.close()
    first = script(tmp_path, write("a.py"), {"text": "done"})
    assert evercontext("run", "-t", "a", "-m", first, cwd=project, env=env).code == 0
    with postgres.away():
        model = script(tmp_path, write("b.py"), write("kept/c.py"), {"text": "done"})
        done = evercontext("run", "-t", "write b", "-m", model, cwd=project, env=env)
        assert WARNING in flat(done.err)
        assert (project / "b.py").exists()
        assert not (project / "kept").exists()
        # Where no rule was ever read from here, any of them may say no.
        strange = {**env, "EC_HOME": str(tmp_path / "strange")}
        model = script(tmp_path, write("d.py"), {"text": "done"})
        refused = evercontext("run", "-t", "write d", "-m", model, cwd=project, env=strange)
        assert "the rules of this project cannot be read now" in flat(refused.err)
        assert (refused.code, (project / "d.py").exists()) == (5, False)
    assert "write b" in evercontext("memory", "list", cwd=project, env=env).out


@pytest.mark.slow
def test_a_server_started_meanwhile_delivers_by_itself(url: str, tmp_path: Path) -> None:
    with postgres.away():
        opening = running(tmp_path / "root", tmp_path / "home", {"EC_DATABASE_URL": url})
        gateway = opening.__enter__()
        try:
            listed = gateway.client.post("/list_files", json={"path": "."})
            assert listed.status_code == 200
            sent = b"".join(
                json.dumps(message).encode() + b"\n"
                for message in (
                    {
                        "jsonrpc": "2.0",
                        "id": 1,
                        "method": "initialize",
                        "params": {
                            "protocolVersion": "2025-06-18",
                            "capabilities": {},
                            "clientInfo": {"name": "t", "version": "1"},
                        },
                    },
                    {"jsonrpc": "2.0", "method": "notifications/initialized"},
                    {
                        "jsonrpc": "2.0",
                        "id": 2,
                        "method": "tools/call",
                        "params": {
                            "name": "remember",
                            "arguments": {"content": "Cranes are liked"},
                        },
                    },
                )
            )
            env = {"EC_DATABASE_URL": url, "EC_HOME": str(gateway.home)}
            asked = evercontext("mcp", cwd=gateway.root, env=env, stdin=sent)
            assert asked.code == 0, asked.err
            assert WARNING in flat(asked.err)
            answer = json.loads(asked.out.splitlines()[-1])
            assert answer["result"]["structuredContent"]["queued"] is True
        except BaseException:
            opening.__exit__(None, None, None)
            raise
    try:
        wait_for(url, "memories", "content = 'Cranes are liked'")
        # So is the console, which nobody could have found before.
        wait_for(url, "kept", "key LIKE 'console:%'")
        link = evercontext("console", "--print", cwd=gateway.root, env=env)
        assert "/console/?ticket=" in link.out, link.err
    finally:
        opening.__exit__(None, None, None)


def test_a_server_that_goes_in_the_middle_of_a_chat_costs_nothing(
    url: str, project: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, *({"text": f"answer {n}"} for n in range(3)))
    talk = subprocess.Popen(
        [EVERCONTEXT, "chat", "-m", model],
        cwd=project,
        env={"PATH": "", "EC_HOME": str(home()), "HOME": str(home()), "EC_DATABASE_URL": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert talk.stdin is not None
    assert talk.stdout is not None
    said = ""

    def ask(words: str, answer: str) -> None:
        nonlocal said
        assert talk.stdin is not None
        assert talk.stdout is not None
        talk.stdin.write(words + "\n")
        talk.stdin.flush()
        while answer not in said:
            line = talk.stdout.readline()
            assert line, said
            said += line

    try:
        ask("one", "answer 0")
        with postgres.away():
            ask("two", "answer 1")
        ask("three", "answer 2")
        talk.stdin.close()
        said += talk.stdout.read()
        assert talk.wait() == 0
    finally:
        talk.kill()
        talk.wait()
        talk.stdout.close()
    assert WARNING in flat(said)
    told = rows(url, "SELECT content FROM messages ORDER BY id")
    assert [one[0] for one in told] == ["one", "answer 0", "two", "answer 1", "three", "answer 2"]
