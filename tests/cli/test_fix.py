from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.command import evercontext
from tests.journeys.story import digest, script, write

TEST = """import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total('[1, 2]'), 3)
"""
BROKEN = "def total(text):\n    return sum(json.loads(txet))\n"
UNITTEST = ("--lint-cmd", "true", "--test-cmd", f"{sys.executable} -m unittest -q")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "店"
    folder.mkdir()
    (folder / "shop.py").write_text(BROKEN)
    (folder / "test_shop.py").write_text(TEST)
    return folder


@pytest.mark.slow
@pytest.mark.contract("E41")
def test_a_project_is_mended_and_taken_back(project: Path) -> None:
    before = digest(project)
    ended = evercontext("fix", *UNITTEST, cwd=project)
    assert (ended.code, ended.out.splitlines()) == (
        0,
        ["fixed  shop.py", "1 failure, 1 fixed, 0 left"],
    ), ended.err
    assert "repair 1: missing import shop.py → 1 failure, 1 left" in ended.err
    assert "repair 2: typo shop.py → 1 failure, green" in ended.err
    assert (project / "shop.py").read_text().startswith("import json\n")
    assert evercontext("fix", *UNITTEST, cwd=project).out == "green, nothing to fix\n"
    assert evercontext("undo", cwd=project).code == 0
    after = {name: text for name, text in digest(project).items() if ".evercontext" not in name}
    assert after == before


def test_a_dry_run_shows_what_would_be_tried(project: Path) -> None:
    before = digest(project)
    ended = evercontext("fix", "--dry-run", *UNITTEST, cwd=project)
    assert ended.code == 4
    assert "would try  missing import: json is used and not imported: import json" in ended.out
    assert "+import json" in ended.out
    assert digest(project) == before


def test_programs_read_it_as_json(project: Path) -> None:
    (project / "shop.py").write_text("def total(text):\n    return 4\n")
    ended = evercontext("fix", "--json", *UNITTEST, cwd=project)
    told = json.loads(ended.out)
    assert (ended.code, told["verdict"], told["changed"]) == (4, "red", [])
    failure = told["before"]["failures"][0]
    assert (failure["file"], failure["line"], failure["kind"]) == ("test_shop.py", 8, "assertion")


def test_where_nothing_can_be_checked_that_is_said(tmp_path: Path) -> None:
    ended = evercontext("fix", cwd=tmp_path)
    assert (ended.code, ended.out[:19]) == (1, "nothing was checked")


@pytest.mark.slow
@pytest.mark.contract("E41")
def test_a_run_shows_its_repairs_to_people_and_programs(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "s.jsonl", write("shop.py", BROKEN + "\n"), {"text": "Done."})
    tests = ("--test-cmd", f"{sys.executable} -m unittest -q", "--repair-rounds", "0")
    (project / "shop.py").unlink()
    ended = evercontext("run", "-t", "x", "-m", model, *tests, cwd=project)
    assert ended.code == 0, ended.err
    assert "repair 2: typo shop.py → 1 failure, green" in ended.err
    (project / "shop.py").unlink()
    ended = evercontext("run", "-t", "x", "-m", model, *tests, "--json", cwd=project)
    told = json.loads(ended.out)
    assert [(one["by"], one["step"]) for one in told["repairs"]] == [
        ("missing import", "other"),
        ("typo", "better"),
    ]
    (project / "shop.py").unlink()
    ended = evercontext("run", "-t", "x", "-m", model, *tests, "--no-repair", "--json", cwd=project)
    assert (ended.code, "repairs" in json.loads(ended.out)) == (4, False)


@pytest.mark.case(74)
def test_the_linter_is_never_let_loose_on_a_test(project: Path) -> None:
    unsorted = TEST.replace("import unittest\n", "import unittest\nimport ast\n")
    (project / "test_shop.py").write_text(unsorted)
    (project / "shop.py").write_text(BROKEN.replace("txet", "text"))
    lint = f"{sys.prefix}/bin/ruff check --select I001 ."
    ended = evercontext("fix", "--lint-cmd", lint, *UNITTEST[2:], cwd=project)
    assert (ended.code, ended.out.splitlines()[0]) == (4, "fixed  shop.py"), ended.err
    assert "rejected" not in ended.err
    assert (project / "test_shop.py").read_text() == unsorted
