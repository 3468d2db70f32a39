"""The page of proof is made from what tests say about themselves."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contract", HERE / "scripts" / "contract.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = """
import pytest
pytestmark = [pytest.mark.contract("E1")]

@pytest.mark.contract("E9", "E10")
@pytest.mark.case(18)
def test_plain(): ...

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.case(7))])
async def test_with_parameters(x): ...

@pytest.mark.contract("N1")
class TestGroup:
    @pytest.mark.contract("N2")
    def test_inside(self): ...

@pytest.mark.contract("T1")
def helper(): ...
"""


def test_marks_are_read_from_functions_classes_and_modules(script: ModuleType) -> None:
    found = dict(script.marked(ast.parse(SOURCE).body, frozenset()))
    assert found == {
        "test_plain": {"E1", "E9", "E10", "18"},
        "test_with_parameters": {"E1", "7"},
        "test_inside": {"E1", "N1", "N2"},
    }


def test_the_contract_defines_each_id_once(script: ModuleType) -> None:
    items, cases = script.items(), script.cases()
    assert len(items) == len(set(items)) == 192
    assert len(cases) == len(set(cases)) == 120


def test_every_id_the_pages_mention_is_defined(script: ModuleType) -> None:
    text = (HERE / "docs" / "reference" / "contract.md").read_text(encoding="utf-8")
    mentioned = set(re.findall(r"\b[ENLRT]\d{1,2}\b", text))
    assert mentioned <= set(script.items())


def test_an_item_without_a_test_is_listed(script: ModuleType) -> None:
    lines = script.rows("Items", ["E1", "E2"], {"E1": {"tests/x/test_y.py": ["test_a"]}})
    assert "Without one: E2." in lines
    assert "| E1 | [x/test_y.py](../../tests/x/test_y.py): test_a |" in lines
