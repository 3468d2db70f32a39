from __future__ import annotations

import pytest

from evercontext.models.embedded import assignment
from evercontext.models.embedded.checks import problem_with

PRINT = assignment.read("Create a.py that prints Hello World")
FUNCTION = assignment.read("Create a.py with a function twice(n) that returns n times 2")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ('print("Hello World', "not Python"),
        ("Hello World", "not Python"),
        ("print(name)", "name, which is defined nowhere"),
        ('def main():\n    print("Hello World")', "do nothing"),
        ('text = "Hello World"', "do nothing"),
        ("print(3 * 3)", "nothing to do with"),
        ('print("Create a.py that prints Hello World")', "repeats"),
    ],
)
def test_a_program_that_cannot_be_the_answer_is_refused(content: str, problem: str) -> None:
    assert problem in (problem_with(content, "python", PRINT) or "")


@pytest.mark.parametrize(
    "content",
    [
        'print("Hello World")',
        'for i in range(2):\n    print("Hello World", i)',
        'def main():\n    print("Hello World")\n\nmain()',
        'import sys\nsys.stdout.write("Hello World")',
    ],
)
def test_a_program_that_may_be_the_answer_is_accepted(content: str) -> None:
    assert problem_with(content, "python", PRINT) is None


def test_an_asked_function_must_be_defined() -> None:
    assert problem_with("def twice(n):\n    return n * 2", "python", FUNCTION) is None
    assert "twice" in (problem_with("def two(n):\n    return n * 2", "python", FUNCTION) or "")
    assert "no function" in (problem_with("print(2)", "python", FUNCTION) or "")


def test_a_function_is_no_class() -> None:
    task = assignment.read("Create a class Dog in dog.py")
    assert "class" in (problem_with("def Dog():\n    return 1", "python", task) or "")


COUNT = assignment.read("Create total.py that prints the numbers from 2 to 4")
PRODUCT = assignment.read("Create total.py that prints the product of 4 and 6")


def test_counting_must_reach_the_last_number() -> None:
    assert problem_with("for n in range(2, 4 + 1):\n    print(n)", "python", COUNT) is None
    assert problem_with("for n in range(2, 5):\n    print(n)", "python", COUNT) is None
    short = problem_with("for n in range(2, 4):\n    print(n)", "python", COUNT)
    assert short == "it does not count to 4"


def test_a_result_needs_the_operation_that_is_asked_for() -> None:
    assert problem_with("print(4 * 6)", "python", PRODUCT) is None
    assert "mult" in (problem_with("print(4 + 6)", "python", PRODUCT) or "")


def test_a_key_given_twice_is_refused() -> None:
    task = assignment.read("Create a.json with size set to large")
    assert "twice" in (problem_with('{"size": true, "size": false}', "json", task) or "")


def test_json_must_parse_and_hold_something() -> None:
    task = assignment.read("Create a.json with name set to demo")
    assert problem_with('{"name": "demo"}', "json", task) is None
    assert "not JSON" in (problem_with('{"name": demo}', "json", task) or "")
    assert problem_with("{}", "json", task) is not None


def test_a_text_must_not_be_the_task() -> None:
    task = assignment.read("Write Hello to a.txt")
    assert problem_with("Hello", "text", task) is None
    assert "repeats" in (problem_with("Write Hello to a.txt.", "text", task) or "")


def test_python_that_would_overflow_the_parser_is_only_refused() -> None:
    assert problem_with("(" * 5000, "python", PRINT) is not None
