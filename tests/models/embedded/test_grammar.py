from __future__ import annotations

import itertools
import re
from contextlib import aclosing
from pathlib import Path

import pytest

from evercontext.models.embedded import assignment, examples, grammar
from evercontext.models.embedded.runtime import Runtime

TASKS = [
    "Create {path} that prints Hello World",
    'Write {path} saying "C:\\new" and It\'s fine; 50% [a] {{b}} `c`',
    "Make {path} that prints the numbers from 3 to 40",
    "Make {path} that prints the product of 3 and 4",
    "{path} に「こんにちは」と表示する関数 hi を作成",
]


def rules(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+) ::= (.*)$", text, re.M))


@pytest.mark.parametrize("ending", assignment.KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_every_rule_that_is_used_is_defined(ending: str, task: str) -> None:
    found = rules(grammar.content(assignment.KINDS[ending], _read(task, ending)))
    outside_literals = (
        re.sub(r'"(\\.|[^"\\])*"|\[(\\.|[^\]])*\]', "", rule) for rule in found.values()
    )
    used = {name for rule in outside_literals for name in re.findall(r"[a-z]\w*", rule)}
    assert used <= set(found)


@pytest.mark.embedded
async def test_the_runtime_reads_every_grammar(smollm2: Path) -> None:
    model = Runtime(smollm2, window=512, verify=lambda path: None)
    try:
        for task, (ending, kind) in itertools.product(TASKS, assignment.KINDS.items()):
            form = grammar.content(kind, _read(task, ending))
            body = {"prompt": "x", "grammar": form, "max_tokens": 2}
            async with aclosing(model.generate(body)) as pieces:
                assert "".join([piece.text async for piece in pieces]), form
    finally:
        await model.close()


def _read(task: str, ending: str) -> assignment.Assignment:
    return assignment.read(task.format(path=f"a{ending}"))


def test_only_words_of_the_task_may_be_quoted() -> None:
    phrases = rules(grammar.content("text", assignment.read("Write Hello to a.txt")))["phrase"]
    assert '"Hello"' in phrases
    assert "World" not in phrases


def test_examples_show_the_grammars_own_form() -> None:
    task = assignment.read("T")
    for kind in assignment.KINDS.values():
        prompt = examples.content_prompt(task, "f", kind)
        assert prompt.endswith(f"Task: T\nFile: f\n```{kind}\n")
        assert prompt != examples.content_prompt(task, "f", kind, attempt=1)
