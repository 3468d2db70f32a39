from __future__ import annotations

import pytest

from evercontext.models.embedded.task_parser import read_task


def path_of(text: str, *tree: str, root: str = "") -> str:
    return read_task(text, tree, root).path


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("Create app/main.py that prints Hello World", "app/main.py"),
        ("Create ./app/hi.py printing Hi", "app/hi.py"),
        ("I need a program in bye.py.", "bye.py"),
        ("hello.py: print It works", "hello.py"),
        ("say.py で「おはよう」と表示する", "say.py"),
        ("src/app.pyに表示するコードを書いて", "src/app.py"),
        ("app に Hello World を作成", "app/main.py"),
        ("Create a program in the src folder that prints Done", "src/main.py"),
        ("Add a script to the lib directory that prints Done", "lib/main.py"),
        ("tool フォルダに Welcome と表示するプログラムを作る", "tool/main.py"),
        ("Create a markdown document in docs about Tea", "docs/README.md"),
        ("Write a JSON file in data with a set to 1", "data/config.json"),
        ("Create a program that prints Hi", "main.py"),
        ("Write a program that prints Live in Tokyo", "main.py"),
    ],
)
def test_the_file_is_named_or_the_conventional_one_of_its_folder(task: str, path: str) -> None:
    assert path_of(task) == path


@pytest.mark.contract("E34")
def test_the_roots_own_name_is_not_repeated() -> None:
    assert path_of("Create app/main.py that prints Hi", root="app") == "main.py"
    assert path_of("app に Hello を作成", root="app") == "main.py"
    assert path_of("Create app/main.py", "app/x.py", root="app") == "app/main.py"


def test_only_the_first_of_several_files_is_written() -> None:
    task = read_task("Create a.py like b.py")
    assert (task.path, task.other_files) == ("a.py", ("b.py",))


def test_phrases_are_runs_of_words_without_paths_and_folders() -> None:
    task = read_task('Create app/x.py that prints "Hi, Bob!" twice')
    assert "Hi, Bob!" in task.phrases
    assert not any("x.py" in phrase or '"' in phrase for phrase in task.phrases)
    folder = read_task("create program that prints Welcome in tool folder")
    assert "Welcome" in folder.phrases
    assert not any("tool" in phrase for phrase in folder.phrases)


@pytest.mark.parametrize(
    ("task", "phrases"),
    [
        ("app に Hello World を作成", ("Hello World",)),
        ("say.py で「おはよう」と表示する", ("おはよう",)),
        ("data.json を作成し title を Sample に設定", ("title", "Sample")),
    ],
)
def test_a_japanese_task_offers_its_latin_and_quoted_texts(
    task: str, phrases: tuple[str, ...]
) -> None:
    assert read_task(task).phrases == phrases


def test_phrases_stay_bounded_for_a_long_task() -> None:
    task = read_task("write " + " ".join(f"word{n}" for n in range(5000)) + " to a.txt")
    assert len(task.phrases) < 1000


@pytest.mark.parametrize(
    "task",
    [
        "What does app/main.py do?",
        "Explain app/main.py",
        "Good morning",
        "この設計を説明して",
    ],
)
def test_questions_and_small_talk_want_no_file(task: str) -> None:
    assert not read_task(task, ["app/main.py"]).wants_file


@pytest.mark.parametrize(
    "task",
    [
        "In b.py, define is_big(n), which says whether n is big",
        "names.txt should contain Alice and Bob",
        "app に Hello World を作成",
    ],
)
def test_an_instruction_wants_a_file(task: str) -> None:
    assert read_task(task).wants_file
