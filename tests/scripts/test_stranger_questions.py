"""The questions of the stranger test name files that are there, so that a rename updates them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.test_repository import HERE


@pytest.fixture
def script() -> ModuleType:
    path = HERE / "scripts/stranger_questions.py"
    spec = importlib.util.spec_from_file_location("stranger_questions", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_expected_file_is_there_and_asked_for_once(script: ModuleType) -> None:
    assert len(script.QUESTIONS) == 40
    assert len(set(script.QUESTIONS.values())) == 40
    assert set(script.QUESTIONS.values()) - set(script.files()) == set()


def test_answers_are_marked_by_first_and_second_guess(script: ModuleType) -> None:
    answers = list(script.QUESTIONS.values())
    assert script.mark(answers) == (40, 40, [])
    answers[0] = f"errors.py, {answers[0]}"
    answers[1] = "errors.py"
    first, second, failed = script.mark(answers)
    assert (first, second, len(failed)) == (38, 39, 2)
