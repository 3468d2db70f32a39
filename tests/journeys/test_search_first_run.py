"""F1: search serves planning and the first run, in a real repository, through the real command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from evercontext.domain.event import Evidence
from evercontext.events.log_reader import read, segments
from evercontext.testing import tiny_repository
from tests.cli.command import evercontext, home
from tests.journeys.person import Person
from tests.journeys.story import call, digest, script

FILES = 62
QUERY = "how is the shipping fee of an order computed"
SHIPPING = '''def shipping_fee(order):
    """Compute the shipping fee of an order by its weight."""
    return 5 + order.weight * 2
'''
FOUND = "shop/shipping.py"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone of more files than a search indexes while it is waited for."""
    files = {f"shop/part_{n}.py": f"def part_{n}(x):\n    return x + {n}\n" for n in range(FILES)}
    origin = tiny_repository(tmp_path / "origin", {**files, FOUND: SHIPPING})
    subprocess.run(
        ["git", "clone", "-q", str(origin), str(tmp_path / "clone")], check=True, timeout=60
    )
    return tmp_path / "clone"


def searching(tmp_path: Path, query: str = QUERY) -> str:
    turn = {"tool_calls": [call("search_code", query=query, top_k=5)]}
    return script(tmp_path / "s.jsonl", turn, {"text": "Looked."})


def planner(tmp_path: Path) -> str:
    tasks = [{"id": "a", "title": "change the fee", "files": [FOUND]}]
    turn = {"role": "planner", "text": json.dumps({"version": 1, "tasks": tasks})}
    return script(tmp_path / "p.jsonl", turn)


def evidence() -> list[Evidence]:
    """What searches found, oldest first."""
    bodies = (event.body for place in segments(home() / "traces") for event in read(place))
    return [body for body in bodies if isinstance(body, Evidence)]


@pytest.mark.contract("E1", "E8", "E46", "N7")
@pytest.mark.slow
def test_planning_reads_the_index_of_the_tree_and_writes_nothing_there(
    clone: Path, tmp_path: Path
) -> None:
    assert evercontext("index", cwd=clone).code == 0
    before = digest(clone)
    given = ("--planner", planner(tmp_path), "-m", "embedded:smollm2")
    ended = evercontext("plan", "-t", QUERY, *given, cwd=clone)
    assert ended.code == 0, ended.err
    assert evidence()[-1].paths[0] == FOUND
    # Nothing was read again: the one at home has taken over what the tree's knows.
    assert "code index:" not in ended.err
    dry = evercontext("run", "-t", "look", "--dry-run", "-m", searching(tmp_path), cwd=clone)
    assert dry.code == 0, dry.err
    assert "  1 hit " in dry.err
    assert evidence()[-1].paths[0] == FOUND
    assert digest(clone) == before


@pytest.mark.contract("E1", "E8", "E46", "N7")
@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_the_first_question_in_a_fresh_clone_is_answered(
    clone: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    before = digest(clone)
    ended = evercontext("run", "-t", "look", "-m", searching(tmp_path), *more, cwd=clone)
    assert ended.code == 0, ended.err
    assert "  1 hit " in ended.err
    assert f"code index: 0 of {FILES + 1} files" in ended.err
    assert evidence()[-1].paths[0] == FOUND
    if more:
        assert digest(clone) == before


@pytest.mark.contract("E8")
@pytest.mark.slow
def test_the_first_plan_in_a_fresh_clone_has_evidence_and_a_run_after_it_indexes_nothing_twice(
    clone: Path, tmp_path: Path
) -> None:
    given = ("--planner", planner(tmp_path), "-m", "embedded:smollm2")
    ended = evercontext("plan", "-t", QUERY, *given, cwd=clone)
    assert ended.code == 0, ended.err
    assert evidence()[-1].paths[0] == FOUND
    assert not (clone / ".evercontext").exists()
    # A machine under load may take more than the ten seconds that a question waits.
    for _ in range(10):
        if "code index:" not in evercontext("plan", "-t", QUERY, *given, cwd=clone).err:
            break
    ended = evercontext("run", "-t", "look", "-m", searching(tmp_path), cwd=clone)
    assert "  1 hit " in ended.err
    assert "code index:" not in ended.err
    assert (clone / ".evercontext" / "index.db").is_file()


def test_nothing_found_is_not_called_ok(tmp_path: Path) -> None:
    project = tiny_repository(tmp_path / "empty", {"a.bin": "x"})
    ended = evercontext("run", "-t", "look", "-m", searching(tmp_path), cwd=project)
    assert ended.code == 0, ended.err
    line = next(line for line in ended.err.splitlines() if "search_code" in line)
    assert "  0 hits" in line
    assert "ok" not in line


@pytest.mark.parametrize("mode", [(), ("--plan",)], ids=["agent", "plan"])
def test_the_chat_searches_at_once(clone: Path, tmp_path: Path, mode: tuple[str, ...]) -> None:
    with Person(clone, "chat", "-m", searching(tmp_path), *mode) as person:
        person.sees("context")
        person.says(f"/search {QUERY}")
        # Which lines are shown depends on how far the index was after the ten seconds.
        person.sees("1 hit", f"{FOUND}:1-")
        assert person.leaves() == 0


def test_the_search_command_answers_in_a_fresh_clone(clone: Path) -> None:
    ended = evercontext("search", QUERY, "--json", cwd=clone)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["chunks"][0]["path"] == FOUND
    assert "indexing first" in ended.err
    # It waits a minute for the index; a slower machine is told what was missing.
    assert told["stale"] == (f"of {FILES + 1} files" in told.get("note", ""))


@pytest.mark.contract("E8")
def test_so_does_our_mcp_server(clone: Path) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    asked: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call("search_code", query=QUERY)},
    ]
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    ended = evercontext("mcp", cwd=clone, stdin=stdin)
    answers = {told.get("id"): told for told in map(json.loads, ended.out.splitlines())}
    assert FOUND in json.dumps(answers[2]["result"]), ended.err
    assert evidence()[-1].paths[0] == FOUND
