"""The search routes (E17-E19) of a server that really runs, asked as an outside program asks."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evercontext.index.code_search import LOOK_EVERY
from evercontext.index.indexer import CHEAP
from evercontext.index.lease import IndexLease
from evercontext.index.location import FOLDER
from evercontext.testing import git
from tests.cli.command import Ended, evercontext
from tests.index.world import SHOP, write
from tests.server.running import Gateway, running

JAPANESE = {
    "日本/認証.py": '"""利用者を確かめる。"""\n\n\ndef 確認する(合言葉):\n    return 合言葉\n',
    "auth/login.py": '"""Authenticate a user."""\n\n\ndef authenticate(user, password):\n'
    '    """Check the password of a user at login."""\n    return user.check(password)\n',
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    base = tmp_path_factory.mktemp("live")
    root = write(base / "root", {**SHOP, **JAPANESE, ".env": "TOKEN=x\n"})
    with running(root, base / "home") as server:
        # Each test finds the tree indexed, whichever of them this process runs first.
        assert server.post("ingest", {"paths": [*SHOP, *JAPANESE]}).status_code == 200
        yield server


def _search(gateway: Gateway, query: str, **more: Any) -> dict[str, Any]:
    answer = gateway.post("search", {"query": query, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _look_again() -> None:
    """Wait until the server would look at the tree again."""
    time.sleep(LOOK_EVERY + 0.1)


@pytest.mark.contract("E17", "E19")
def test_what_was_ingested_is_found_in_the_shape_of_the_contract(gateway: Gateway) -> None:
    done = gateway.post("ingest", {"paths": [*SHOP, *JAPANESE]})
    assert done.status_code == 200, done.text
    assert done.json()["status"] == "ok"
    found = _search(gateway, "charge a credit card")
    assert 1 <= len(found["chunks"]) <= 5
    assert found["stale"] is False
    best = found["chunks"][0]
    assert best["path"] == "shop/payment.py"
    assert re.fullmatch(r"L\d+-L\d+", best["span"])
    assert "def charge" in best["text"]
    scores = [chunk["score"] for chunk in found["chunks"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(_search(gateway, "shop", top_k=1)["chunks"]) == 1


@pytest.mark.contract("E19")
def test_a_prefix_limits_the_paths(gateway: Gateway) -> None:
    inside = _search(gateway, "cart", filters={"path_prefix": "tests/"}, top_k=20)
    assert {chunk["path"] for chunk in inside["chunks"]} == {"tests/test_cart.py"}
    for prefix in ("nowhere/", "../", "/etc/", "日本/x"):
        assert _search(gateway, "cart", filters={"path_prefix": prefix})["chunks"] == []
    assert _search(gateway, "確認", filters={"path_prefix": "日本/"})["chunks"]


@pytest.mark.contract("E19")
def test_japanese_finds_japanese_and_english_code(gateway: Gateway) -> None:
    assert _search(gateway, "合言葉を確認する")["chunks"][0]["path"] == "日本/認証.py"
    paths = [c["path"] for c in _search(gateway, "ユーザーのパスワードを認証する")["chunks"]]
    assert "auth/login.py" in paths[:3]
    assert (
        _search(gateway, "ｐａｙｍｅｎｔ　ｇａｔｅｗａｙ")["chunks"][0]["path"] == "shop/payment.py"
    )


@pytest.mark.contract("E17", "E39")
def test_a_diff_moves_adds_and_removes(gateway: Gateway) -> None:
    write(gateway.root, {"moved/from.py": "def wanderer():\n    return 'here'\n"})
    gateway.post("ingest", {"paths": ["moved/from.py"]})
    (gateway.root / "moved/from.py").rename(gateway.root / "moved/to.py")
    write(gateway.root, {"moved/new.py": "def newcomer(): pass\n"})
    diff = {
        "added": ["moved/new.py"],
        "modified": [],
        "deleted": [],
        "renamed": [{"from": "moved/from.py", "to": "moved/to.py"}],
    }
    done = gateway.post("ingest", {"diff": diff}).json()
    assert (done["added"], done["deleted"], done["renamed"], done["embedded"]) == (2, 1, 1, 1)
    paths = [c["path"] for c in _search(gateway, "wanderer", top_k=20)["chunks"]]
    assert paths[0] == "moved/to.py"
    assert "moved/from.py" not in paths


@pytest.mark.contract("E18")
def test_a_pruned_path_is_gone(gateway: Gateway) -> None:
    write(gateway.root, {"short/lived.py": "def short_lived(): pass\n"})
    gateway.post("ingest", {"paths": ["short/lived.py"]})
    assert _search(gateway, "short_lived")["chunks"][0]["path"] == "short/lived.py"
    (gateway.root / "short/lived.py").unlink()
    assert gateway.post("prune", {"paths": ["short"]}).json()["deleted"] == 1
    assert "short/lived.py" not in str(_search(gateway, "short_lived"))


@pytest.mark.contract("E19")
def test_a_saved_file_is_found_without_being_announced(gateway: Gateway) -> None:
    write(gateway.root, {"saved.py": "def saved_by_an_editor(): pass\n"})
    _look_again()
    found = _search(gateway, "saved_by_an_editor")
    assert (found["chunks"][0]["path"], found["stale"]) == ("saved.py", False)


@pytest.mark.contract("E19")
def test_many_changes_are_waited_for_by_the_question_that_finds_them(gateway: Gateway) -> None:
    """F1: they need not be ingested by hand."""
    many = {f"many/f{i}.py": f"def many_{i}(): pass\n" for i in range(CHEAP + 5)}
    write(gateway.root, many)
    _look_again()
    found = _search(gateway, "many_7")
    assert (found["chunks"][0]["path"], found["stale"]) == ("many/f7.py", False)
    assert "coverage" not in found


@pytest.mark.contract("E19")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "   "},
        {"query": "　\t"},
        {"query": 7},
        {"query": None},
        {"query": "x", "top_k": 0},
        {"query": "x", "top_k": 101},
        {"query": "x", "top_k": "5"},
        {"query": "x", "top_k": 1.5},
        {"query": "x", "filters": {"path_prefix": 1}},
        {"query": "x", "filters": {"language": "python"}},
        {"query": "x", "limit": 3},
        ["x"],
    ],
)
def test_a_wrong_question_is_422(gateway: Gateway, body: Any) -> None:
    answer = gateway.post("search", body)
    assert answer.status_code == 422, answer.text
    assert "error" in answer.json() or "detail" in answer.json()


@pytest.mark.case(116)
@pytest.mark.parametrize(
    "query",
    [
        '"',
        "AND",
        "(((",
        "*",
        "NEAR(x",
        "path:x",
        "'; drop table files",
        "a\u0000b",
        "%s{}",
        "(a+)+$",
        "\u202e",
        "🎉",
        "x" * 2_000,
    ],
)
def test_no_question_breaks_the_search(gateway: Gateway, query: str) -> None:
    assert gateway.post("search", {"query": query}).status_code == 200


@pytest.mark.contract("E17", "E18")
@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("ingest", {}, 422),
        ("ingest", {"paths": [], "diff": {}}, 422),
        ("ingest", {"paths": "a.py"}, 422),
        ("ingest", {"paths": ["../outside.py"]}, 400),
        ("ingest", {"paths": ["/etc/passwd"]}, 400),
        ("ingest", {"paths": ["a\u0000.py"]}, 400),
        ("ingest", {"paths": [".env"]}, 403),
        ("ingest", {"diff": {"renamed": [{"from": "a.py", "to": "../b.py"}]}}, 400),
        ("ingest", {"diff": {"renamed": [{"from": "a.py"}]}}, 422),
        ("ingest", {"paths": ["never/was.py"]}, 200),
        ("prune", {}, 422),
        ("prune", {"paths": ["../x"]}, 400),
        ("prune", {"paths": ["never/was.py"]}, 200),
    ],
)
def test_paths_are_refused_as_everywhere(
    gateway: Gateway, route: str, body: Any, status: int
) -> None:
    assert gateway.post(route, body).status_code == status


@pytest.mark.contract("E12", "E46")
def test_the_trace_keeps_the_evidence_and_the_audit_no_content(gateway: Gateway) -> None:
    trace = str(uuid.uuid4())
    answer = gateway.post("search", {"query": "charge a credit card"}, x_trace_id=trace)
    assert answer.headers["x-trace-id"] == trace
    lines = [
        json.loads(line)
        for segment in (gateway.home / "traces").glob("*.jsonl")
        for line in segment.read_text("utf-8").splitlines()
    ]
    mine = [line for line in lines if line["trace_id"] == trace]
    (evidence,) = [line["data"] for line in mine if line["type"] == "evidence"]
    assert evidence["paths"][0] == answer.json()["chunks"][0]["path"]
    (audit,) = [line for line in gateway.audit() if line["trace_id"] == trace]
    assert audit["status"] == 200
    assert "charge a credit" not in json.dumps(audit)


@pytest.mark.case(128)
async def test_an_ingest_waits_for_another_process_that_indexes(gateway: Gateway) -> None:
    write(gateway.root, {"waited.py": "def waited_for(): pass\n"})
    answers: list[int] = []

    def ask() -> None:
        answers.append(gateway.post("ingest", {"paths": ["waited.py"]}).status_code)

    async with IndexLease(gateway.root / FOLDER).hold():
        asking = threading.Thread(target=ask)
        asking.start()
        asking.join(0.7)
        assert answers == []
        # Meanwhile the index can still be asked.
        assert _search(gateway, "charge a card")["chunks"]
    asking.join(20)
    assert answers == [200]


def test_the_index_lies_in_the_tree_and_nowhere_else(gateway: Gateway) -> None:
    assert (gateway.root / FOLDER / "index.db").is_file()
    assert not (gateway.home / "indexes").exists()


def test_a_second_project_of_the_server_is_not_searched(gateway: Gateway, tmp_path: Path) -> None:
    write(tmp_path, {"foreign.py": "def foreign_function(): pass\n"})
    assert "foreign.py" not in str(_search(gateway, "foreign_function"))


def _there(gateway: Gateway, *arguments: str, cwd: Path) -> Ended:
    return evercontext(*arguments, cwd=cwd, env={"EC_RAG_URL": gateway.url})


@pytest.mark.contract("E33")
def test_the_command_asks_the_server_that_is_named(gateway: Gateway, tmp_path: Path) -> None:
    found = _there(gateway, "search", "charge a credit card", cwd=tmp_path)
    assert found.out.startswith("shop/payment.py:"), found.err
    asked = _there(gateway, "search", "cart", "--json", "--path-prefix", "tests/", cwd=tmp_path)
    assert {c["path"] for c in json.loads(asked.out)["chunks"]} == {"tests/test_cart.py"}
    assert list(tmp_path.iterdir()) == []
    nobody = {"EC_RAG_URL": "http://127.0.0.1:9"}
    lost = evercontext("search", "cart", cwd=tmp_path, env=nobody)
    assert lost.code != 0
    assert "EC_RAG_URL" in lost.err


@pytest.mark.slow
@pytest.mark.contract("E6", "E33")
@pytest.mark.case(126)
def test_commits_are_announced_to_the_server_that_is_named(
    gateway: Gateway, tmp_path: Path
) -> None:
    """The server's tree is the work tree here, as it is for a team that shares one."""
    tree = gateway.root
    write(tree, {"told/a.py": "def told_first(): pass\n", "told/b.py": "def told_second(): pass\n"})
    git(tree, "init", "-q")
    git(tree, "add", "--all", "told")
    git(tree, "commit", "-qm", "first")
    assert "2 paths announced" in _there(gateway, "hook", "drain", cwd=tree).out
    git(tree, "mv", "told/a.py", "told/moved.py")
    git(tree, "rm", "-q", "told/b.py")
    write(tree, {"told/c.py": "def told_third(): pass\n"})
    git(tree, "add", "told")
    git(tree, "commit", "-qm", "second")
    away = evercontext("hook", "drain", cwd=tree, env={"EC_RAG_URL": "http://127.0.0.1:9"})
    assert away.code != 0
    assert "3 paths announced" in _there(gateway, "hook", "drain", cwd=tree).out
    assert "0 paths announced" in _there(gateway, "hook", "drain", cwd=tree).out
    lines = [
        json.loads(line)["data"]
        for segment in (gateway.home / "traces").glob("*.jsonl")
        for line in segment.read_text("utf-8").splitlines()
        if json.loads(line)["type"] == "indexed"
    ]
    assert (lines[-1]["added"], lines[-1]["deleted"], lines[-1]["renamed"]) == (2, 2, 1)
