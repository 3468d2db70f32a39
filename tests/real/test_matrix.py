"""The matrix itself, which needs no real program."""

from __future__ import annotations

import json
import re

from tests.real.matrix import Matrix, Outcome, page
from tests.real.registry import BACKEND, JUDGE, PROGRAMS

CODEX = ("codex", PROGRAMS["codex"].versions[0])


def test_a_cell_is_as_bad_as_its_worst_test_and_reasons_are_told() -> None:
    matrix = Matrix(
        [
            Outcome(*CODEX, BACKEND, "test_a", "ok"),
            Outcome(*CODEX, BACKEND, "test_b", "failed", "it broke"),
            Outcome(*CODEX, JUDGE, "test_c", "skipped", "no sandbox"),
        ]
    )
    lines = matrix.lines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")][:4] == [
        *CODEX,
        "failed 1/2",
        "skipped",
    ]
    assert f"failed: codex {CODEX[1]}, backend, test_b: it broke" in lines
    assert lines[-1] == "2 cells of 3 tests: 1 failed, 0 ok, 1 skipped"
    assert [cell["verdict"] for cell in json.loads(matrix.json())["cells"]] == ["failed", "skipped"]


def test_the_page_is_dated_and_has_table_and_reasons() -> None:
    outcomes = [Outcome(*CODEX, BACKEND, "test_a", "skipped", "no sandbox")]
    written = page(Matrix(outcomes).json())
    assert re.search(r"from one run of its tests on \d{4}-\d\d-\d\d with\nPython", written)
    assert re.search(rf"\| codex +\| {CODEX[1]} +\| skipped +\| · +\|", written)
    assert f"- skipped: codex {CODEX[1]}, backend, test_a: no sandbox" in written
    assert re.search(r"^- not run: .*acpx \d", written, re.MULTILINE)


def test_of_several_runs_the_later_one_counts() -> None:
    before = Outcome(*CODEX, BACKEND, "test_a", "failed", "it broke")
    after = Outcome(*CODEX, BACKEND, "test_a", "ok")
    other = Outcome(*CODEX, JUDGE, "test_b", "ok")
    written = page(Matrix([before, other]).json(), Matrix([after]).json())
    assert "from 2 runs, each of a part," in written
    assert "it broke" not in written
    assert "- 2 cells of 2 tests: 0 failed, 2 ok, 0 skipped" in written


def test_every_program_is_pinned() -> None:
    assert all(program.versions for program in PROGRAMS.values())
    assert all(program.name == name for name, program in PROGRAMS.items())
