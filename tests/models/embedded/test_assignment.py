from __future__ import annotations

import pytest

from evercontext.models.embedded import assignment


def path_of(text: str, *tree: str, root: str = "") -> tuple[str, ...]:
    return assignment.read(text, tree, root).writable


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("Create app/main.py that prints Hello World", "app/main.py"),
        ("Create ./app/hi.py printing Hi", "app/hi.py"),
        ("I need a program in bye.py.", "bye.py"),
        ("hello.py: print It works", "hello.py"),
        ("say.py で「おはよう」と表示する", "say.py"),
        ("src/app.pyに表示するコードを書いて", "src/app.py"),
    ],
)
def test_a_named_file_is_the_only_candidate(task: str, path: str) -> None:
    assert path_of(task) == (path,)


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("app に Hello World を作成", "app/main.py"),
        ("Create a program in the src folder that prints Done", "src/main.py"),
        ("tool フォルダに Welcome と表示するプログラムを作る", "tool/main.py"),
        ("Create a markdown document in docs about Tea", "docs/README.md"),
        ("Write a JSON file in data with a set to 1", "data/config.json"),
        ("Create a program that prints Hi", "main.py"),
    ],
)
def test_a_folder_means_its_conventional_entry_file(task: str, path: str) -> None:
    assert path_of(task) == (path,)


def test_a_place_in_the_text_is_no_folder() -> None:
    assert path_of("Write a program that prints Live in Tokyo") == ("main.py",)
    assert path_of("Print Hi in Tokyo", "Tokyo/readme.md") == ("Tokyo/main.py",)


@pytest.mark.contract("E34")
def test_the_roots_own_name_is_not_repeated() -> None:
    assert path_of("Create app/main.py that prints Hi", root="app") == ("main.py",)
    assert path_of("app に Hello を作成", root="app") == ("main.py",)
    assert path_of("Create app/main.py", "app/x.py", root="app") == ("app/main.py",)


def test_several_named_files_are_all_candidates() -> None:
    assert path_of("Create a.py like b.py") == ("a.py", "b.py")


def test_phrases_are_runs_of_words_without_paths_and_places() -> None:
    task = assignment.read('Create app/x.py that prints "Hi, Bob!" twice')
    assert "Hi, Bob!" in task.phrases
    assert not any("x.py" in phrase or '"' in phrase for phrase in task.phrases)
    folder = assignment.read("create program that prints Welcome in tool folder")
    assert "Welcome" in folder.phrases
    assert not any("tool" in phrase for phrase in folder.phrases)


def test_phrases_stay_bounded_for_a_long_task() -> None:
    task = assignment.read("write " + " ".join(f"word{n}" for n in range(5000)) + " to a.txt")
    assert len(task.phrases) < 1000


@pytest.mark.parametrize("task", ["What does app/main.py do?", "Explain app/main.py"])
def test_a_question_asks_and_writes_nothing(task: str) -> None:
    found = assignment.read(task, ["app/main.py"])
    assert found.asks
    assert not found.wants_file


def test_a_definition_is_no_question() -> None:
    task = assignment.read("In b.py, define is_big(n), which says whether n is big")
    assert task.wants_file
    assert not task.asks


def test_small_talk_wants_no_file() -> None:
    assert not assignment.read("Good morning").wants_file
    assert assignment.read("app に Hello World を作成").wants_file


def test_kinds_follow_the_ending() -> None:
    assert assignment.kind_of("a/B.PY") == "python"
    assert assignment.kind_of("a/b.rs") is None


def test_counting_and_computing_are_told_from_texts() -> None:
    assert assignment.read("a.py prints the numbers from 1 to 5").numbers == "range"
    assert assignment.read("a.py で 2 から 5 まで表示する").numbers == "range"
    assert assignment.read("a.py prints 10 plus 20").numbers == "result"
    assert assignment.read("from1to5.py prints Version 2").numbers is None


def test_a_functions_name_is_found_where_it_is_given() -> None:
    assert assignment.read("a.py with a function add(a, b)").function == "add"
    assert assignment.read("a.py に数を2倍にする関数 twice を作成").function == "twice"
    assert assignment.read("a.py with a function that adds").function is None
