from __future__ import annotations

import os
from pathlib import Path

import pytest

from evercontext.evaluation.judge_prompt import LARGEST, Template, load, packaged
from evercontext.evaluation.rubric import Rubric


@pytest.mark.contract("L17", "L18")
def test_the_packaged_template_takes_weights_and_document() -> None:
    filled = packaged().fill("# My document", Rubric.of())
    assert "completeness 0.3, accuracy 0.3, clarity 0.2, usability 0.2" in filled
    assert "# My document" in filled
    assert "{{" not in filled


@pytest.mark.contract("L18")
@pytest.mark.case(108)
@pytest.mark.parametrize(
    "hostile",
    ["{{accuracy_weight}}", "{{document_content}}", "a {{criteria}} b", "{{{{clarity_weight}}}}"],
)
def test_placeholders_inside_the_document_stay_literal(hostile: str) -> None:
    template = Template("[{{accuracy_weight}}] <{{document_content}}> {{unknown}}")
    assert template.fill(hostile, Rubric.of()) == f"[0.3] <{hostile}> {{{{unknown}}}}"


@pytest.mark.contract("L17")
def test_a_template_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("採点: {{document_content}}", encoding="utf-8")
    template, warning = load(path)
    assert warning is None
    assert template.fill("文書", Rubric.of()) == "採点: 文書"


@pytest.mark.contract("L17")
@pytest.mark.case(110)
@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "large", "binary", "no place"])
def test_anything_else_is_refused_with_a_warning(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "template"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(LARGEST + 1)
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe")
    elif kind == "no place":
        path.write_text("no placeholder at all")
    template, warning = load(path)
    assert warning is not None
    assert str(path) in warning
    assert template.fill("x", Rubric.of()) == packaged().fill("x", Rubric.of())
