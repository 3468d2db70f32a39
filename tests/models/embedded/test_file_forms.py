from __future__ import annotations

import itertools
import re
from contextlib import aclosing
from pathlib import Path

import pytest

from evercontext.models.embedded import file_forms
from evercontext.models.embedded.file_forms import FORMS, FileForm, form_of, problem_with
from evercontext.models.embedded.runtime import Runtime
from evercontext.models.embedded.task_parser import read_task

TASKS = [
    "Create a that prints Hello World",
    'Write a saying "C:\\new" and It\'s fine; 50% [a] {{b}} `c`',
    "Make a that prints the numbers from 3 to 40",
    "a に「こんにちは」と表示する",
]
PRINT = form_of("a.py", "Create a.py that prints Hello")
FUNCTION = form_of("a.py", "Create a.py with a function twice(n) that returns n times 2")
JSON = form_of("a.json", "Create a.json with name set to demo")


def grammar_of(form: FileForm, task: str) -> str:
    return file_forms.grammar(form, read_task(task).phrases)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.name} {form.words}")
@pytest.mark.parametrize("task", TASKS)
def test_every_rule_that_is_used_is_defined(form: FileForm, task: str) -> None:
    rules = dict(re.findall(r"^(\w+) ::= (.*)$", grammar_of(form, task), re.M))
    outside_literals = (
        re.sub(r'"(\\.|[^"\\])*"|\[(\\.|[^\]])*\]', "", rule) for rule in rules.values()
    )
    used = {name for rule in outside_literals for name in re.findall(r"[a-z]\w*", rule)}
    assert used <= set(rules)


@pytest.mark.embedded
@pytest.mark.slow
async def test_the_runtime_reads_every_grammar(smollm2: Path) -> None:
    model = Runtime(smollm2, window=512, verify=lambda path: None)
    try:
        for task, form in itertools.product(TASKS, FORMS):
            grammar = grammar_of(form, task)
            # One Japanese letter may be three tokens: fewer make no text at all.
            body = {"prompt": "x", "grammar": grammar, "max_tokens": 8}
            async with aclosing(model.generate(body)) as pieces:
                assert "".join([piece.text async for piece in pieces]), grammar
    finally:
        await model.close()


def test_only_texts_of_the_task_may_be_quoted() -> None:
    form = form_of("a.txt", "")
    assert form is not None
    phrases = re.findall(r"^phrase ::= (.*)$", grammar_of(form, "Write Hello to a.txt"), re.M)[0]
    assert '"Hello"' in phrases
    assert "World" not in phrases


def test_the_task_chooses_among_the_forms_of_python() -> None:
    roots = {
        text: form.root
        for text in ("print Hi", "a function add(a, b)", "numbers 1 to 5", "prints 10 plus 20")
        if (form := form_of("a.py", text))
    }
    assert len(set(roots.values())) == 4
    assert "phrase" in roots["print Hi"]
    assert form_of("a.rs", "print Hi") is None


def test_the_prompt_shows_the_form_and_differs_in_a_second_attempt() -> None:
    for form in FORMS:
        first = file_forms.prompt(form, "T", "f")
        assert first.endswith(f"Task: T\nFile: f\n```{form.name}\n")
        assert first != file_forms.prompt(form, "T", "f", reverse=True)


@pytest.mark.parametrize(
    ("form", "content", "problem"),
    [
        (PRINT, "", "empty"),
        (PRINT, 'print("Hello', "not python"),
        (PRINT, "(" * 5000, "not python"),
        (FUNCTION, "def twice(n):\n    return m * 2", "m, which is defined nowhere"),
        (JSON, '{"name": demo}', "not json"),
    ],
)
def test_a_file_that_does_not_parse_is_refused(form: FileForm, content: str, problem: str) -> None:
    assert problem in (problem_with(content, form) or "")


@pytest.mark.parametrize(
    ("form", "content"),
    [
        (PRINT, 'print("Hello")\n'),
        (PRINT, "for number in range(1, 3 + 1):\n    print(number)\n"),
        (FUNCTION, "def twice(n):\n    return n * 2\n"),
        (JSON, '{"name": "demo"}\n'),
    ],
)
def test_a_file_of_its_form_is_accepted(form: FileForm, content: str) -> None:
    assert problem_with(content, form) is None
