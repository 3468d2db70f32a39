from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.testing import git, tiny_repository
from tests.cli.command import evercontext


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.mark.slow
@pytest.mark.contract("R54")
def test_a_memory_is_added_found_listed_and_forgotten(project: Path, tmp_path: Path) -> None:
    added = evercontext("memory", "add", "デプロイは金曜日に行う", cwd=project)
    assert added.code == 0, added.err
    id = added.out.strip()
    found = evercontext("memory", "search", "いつデプロイしますか", "--json", cwd=project)
    [answer] = [json.loads(line) for line in found.out.splitlines()]
    assert answer["query"] == "いつデプロイしますか"
    assert [one["id"] for one in answer["results"]] == [id]
    assert answer["results"][0]["score"] > 0.2
    assert id in evercontext("memory", "list", cwd=project).out
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    assert evercontext("memory", "search", "デプロイ", cwd=elsewhere).code == 1
    assert evercontext("memory", "forget", id, cwd=project).code == 0
    again = evercontext("memory", "forget", id, cwd=project)
    assert (again.code, "memory list" in again.err) == (1, True)


@pytest.mark.contract("R54")
def test_turns_come_in_and_questions_go_through_a_pipe(project: Path) -> None:
    lines = [
        {
            "id": "D1:1",
            "content": "I signed up for pottery",
            "speaker": "Ana",
            "session": 1,
            "created_at": "1:56 pm on 8 May, 2023",
        },
        {"id": "D1:2", "content": "", "speaker": "Ben", "session": 1},
        {"id": "D1:3", "content": "The heron is back", "speaker": "Ben", "session": 1},
    ]
    given = "".join(json.dumps(line) + "\n" for line in lines)
    # Nine hours ahead of Greenwich, with no need of a table of zones.
    tokyo = {"TZ": "JST-9"}
    taken = evercontext("memory", "import", "-", cwd=project, stdin=given, env=tokyo)
    assert (taken.code, taken.out) == (0, "2 memories taken in\n"), taken.err
    assert "2023-05-08" in evercontext("memory", "list", cwd=project, env=tokyo).out
    questions = 'When did Ana sign up for pottery?\nNEAR("\nWho saw the heron?\n'
    told = evercontext("memory", "search", "--stdin", "--json", cwd=project, stdin=questions)
    answers = [json.loads(line) for line in told.out.splitlines()]
    assert [one["query"] for one in answers] == questions.splitlines()
    assert answers[0]["results"][0]["id"] == "D1:1"
    assert answers[0]["results"][0]["created_at"].startswith("2023-05-08T04:56")
    assert answers[2]["results"][0]["id"] == "D1:3"
    assert set(answers[0]["results"][0]) >= {"id", "content", "score", "reasons"}


@pytest.mark.slow
@pytest.mark.contract("R54")
def test_an_export_is_an_import_elsewhere(project: Path, tmp_path: Path) -> None:
    evercontext("memory", "add", "We use tabs", cwd=project)
    exported = evercontext("memory", "export", cwd=project).out
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "all.jsonl").write_text(exported)
    assert evercontext("memory", "import", "../all.jsonl", cwd=other).code == 0
    [line] = evercontext("memory", "export", cwd=other).out.splitlines()
    was, now = json.loads(exported), json.loads(line)
    assert {**now, "project": ""} == {**was, "project": ""}


@pytest.mark.slow
def test_two_directories_that_become_one_project_lose_nothing(tmp_path: Path) -> None:
    """F4: ids that both had kept what only one knew from being carried over."""
    first, second = (tiny_repository(tmp_path / name, {"a": "b"}) for name in ("a", "b"))
    evercontext("memory", "add", "Herons nest here", cwd=first)
    exported = evercontext("memory", "export", cwd=first).out
    assert evercontext("memory", "import", "-", cwd=second, stdin=exported).code == 0
    evercontext("memory", "add", "Only b knows owls", cwd=second)
    for place in (first, second):
        git(place, "remote", "add", "origin", "git@git.example:team/app.git")
    evercontext("memory", "list", cwd=first)
    listed = evercontext("memory", "list", cwd=second)
    assert "Only b knows owls" in listed.out
    assert listed.out.count("Herons nest here") == 1
    assert listed.err == ""


@pytest.mark.parametrize(
    "line", ['{"id": 1}', "[1]", "{", '{"content": 7}', '{"content": "x", "source_type": "zzz"}']
)
def test_a_bad_line_is_named(project: Path, line: str) -> None:
    ended = evercontext("memory", "import", "-", cwd=project, stdin=f"{line}\n")
    assert ended.code == 64
    assert "line 1" in ended.err


def test_a_line_whose_time_cannot_be_read_is_named_and_the_others_are_taken(project: Path) -> None:
    """25.4: it was stored as if it had been said now."""
    times = ["2023/05/08 13:56", "soon", 1683554160, "2023年5月8日"]
    given = "".join(
        json.dumps({"id": str(n), "content": f"note {n}", "created_at": time}) + "\n"
        for n, time in enumerate(times)
    )
    ended = evercontext("memory", "import", "-", cwd=project, stdin=given)
    assert ended.code == 64
    assert "line 2 ('soon')" in ended.err
    kept = [
        json.loads(line) for line in evercontext("memory", "export", cwd=project).out.splitlines()
    ]
    assert {one["id"]: one["created_at"][:7] for one in kept} == dict.fromkeys("023", "2023-05")


@pytest.mark.slow
def test_what_is_imported_twice_is_there_once_and_comes_out_as_it_was(
    project: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        evercontext("memory", "add", "We use tabs", cwd=project)
    whole = evercontext("memory", "export", cwd=project).out
    assert json.loads(whole)["seen"] == 2
    other = tmp_path / "other"
    other.mkdir()
    for said in ("1 memory taken in\n", "0 memories taken in, 1 known already or forgotten\n"):
        assert evercontext("memory", "import", "-", cwd=other, stdin=whole).out == said
    again = json.loads(evercontext("memory", "export", cwd=other).out)
    assert again == json.loads(whole) | {"project": str(other.resolve())}
    assert evercontext("memory", "forget", again["id"], cwd=other).code == 0
    assert evercontext("memory", "import", "-", cwd=other, stdin=whole).out == said
    assert evercontext("memory", "export", cwd=other).out == ""


@pytest.mark.slow
def test_one_user_of_a_project_does_not_see_the_other(project: Path) -> None:
    evercontext("memory", "add", "Ana likes herons", "--user", "ana", cwd=project)
    hers = evercontext("memory", "list", "--user", "ana", "--json", cwd=project)
    [kept] = json.loads(hers.out)
    for command in (["search", "herons"], ["forget", kept["id"]]):
        denied = evercontext("memory", *command, "--user", "ben", cwd=project)
        assert denied.code == 1
        assert "Ana" not in denied.out
    assert evercontext("memory", "list", cwd=project).out == ""
    assert evercontext("memory", "forget", kept["id"][:22], "--user", "ana", cwd=project).code == 0


@pytest.mark.slow
@pytest.mark.contract("R54")
def test_your_own_memories_are_yours_without_saying_so_each_time(project: Path) -> None:
    ana = {"EC_USER": "ana"}
    evercontext("memory", "add", "Ana likes herons", cwd=project, env=ana)
    evercontext("memory", "add", "All like robins", "--user", "", cwd=project, env=ana)
    hers = evercontext("memory", "list", cwd=project, env=ana).out
    assert ("herons" in hers, "robins" in hers) == (True, True)
    everybodys = evercontext("memory", "list", cwd=project).out
    assert ("herons" in everybodys, "robins" in everybodys) == (False, True)
    # No project can make you somebody else.
    (project / "evercontext.toml").write_text('user = "ana"\n')
    assert "herons" not in evercontext("memory", "list", cwd=project).out


@pytest.mark.parametrize(
    "words", [["add", "?"], ["add", "tea", "--user", "?"], ["search", "?"], ["forget", "m1", "?"]]
)
def test_an_argument_that_is_no_text_names_the_fix(project: Path, words: list[str]) -> None:
    given = [word.replace("?", "caf\udce9") for word in words]
    ended = evercontext("memory", *given, cwd=project)
    assert ended.code == 64
    assert "is not valid UTF-8. Use a UTF-8 terminal or file" in ended.err


@pytest.mark.contract("R54")
def test_what_you_remember_by_a_tool_call_is_yours(project: Path) -> None:
    told = json.dumps({"content": "Ana likes herons"})
    called = ("tools", "call", "evercontext:remember", told)
    assert evercontext(*called, cwd=project, env={"EC_USER": "ana"}).code == 0
    assert evercontext("memory", "list", cwd=project).out == ""
    assert "herons" in evercontext("memory", "list", cwd=project, env={"EC_USER": "ana"}).out


@pytest.mark.contract("R54")
def test_a_user_has_one_name_however_it_is_typed(project: Path) -> None:
    # The same name, as two keyboards write it, and with a space that nobody sees.
    typed = {"EC_USER": "\u304b\u3099\u304f "}
    assert evercontext("memory", "add", "tea", cwd=project, env=typed).code == 0
    assert "tea" in evercontext("memory", "list", "--user", "\u304c\u304f", cwd=project).out


@pytest.mark.parametrize("name", [" ", "a\nb", "x" * 65])
def test_a_user_without_a_name_is_refused(project: Path, name: str) -> None:
    asked = evercontext("memory", "add", "tea", "--user", name, cwd=project)
    assert (asked.code, "a user's name is" in asked.err) == (64, True)
    set_so = evercontext("memory", "list", cwd=project, env={"EC_USER": name})
    assert (set_so.code, "a user's name is" in set_so.err) == (1, True)
