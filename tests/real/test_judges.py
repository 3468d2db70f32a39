"""C1: the real Codex CLI as the judge of documents, and what is done where it cannot judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.process.sandbox import available
from tests.cli.command import evercontext
from tests.real.install import Installed
from tests.real.marks import real
from tests.real.registry import JUDGE
from tests.real.users import USERS, files
from tests.real.vendor_api import VendorApi, text

pytestmark = pytest.mark.skipif(
    not any(layer.works for layer in available()), reason="no sandbox works here"
)
VERDICT = {
    "score": 9.0,
    "rubric_scores": {"completeness": 9, "accuracy": 9, "clarity": 9, "usability": 9},
    "suggestions": ["Add an example."],
    "pass": True,
}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A document that is worth judging."""
    path = tmp_path / "guide.md"
    path.write_text("# Guide\n\nRun `make` to build the program. Then run `./program`.\n")
    return path


@real(JUDGE, "codex")
def test_codex_judges_when_nobody_named_a_judge(installed: Installed, document: Path) -> None:
    """C1, P16: installing it is enough; the answer names it, and nothing is left behind."""
    with VendorApi(text(json.dumps(VERDICT))) as api:
        env = USERS["codex"](installed, api.url)
        before = files(".codex")
        ended = evercontext("evaluate", str(document), "--json", env=env)
    assert ended.code in (0, 4), ended.err
    judged = json.loads(ended.out)
    assert "codex" in json.dumps(judged)
    assert len(api.bodies) == 1
    assert files(".codex") == before


@real(JUDGE, "codex=newest")
def test_a_judge_that_nobody_named_and_that_fails_is_passed_over(
    installed: Installed, document: Path
) -> None:
    """C1: the local judge takes over and says why; a refused request is not repeated."""
    with VendorApi() as api:
        api.failure = (400, {"error": {"message": "Not today", "code": 400}})
        env = USERS["codex"](installed, api.url)
        ended = evercontext("evaluate", str(document), "--json", env=env)
        requests = len(api.bodies)
        named = evercontext("evaluate", str(document), "--judge", "codex", env=env)
    assert ended.code in (0, 4), ended.err
    assert "passed over" in ended.out + ended.err
    assert requests == 1, "a refused request is not repeated"
    assert named.code not in (0, 4)
    assert "Not today" in named.err


@real(JUDGE, "gemini=newest")
def test_gemini_judges_where_it_is_named(installed: Installed, document: Path) -> None:
    with VendorApi(text(json.dumps(VERDICT))) as api:
        env = USERS["gemini"](installed, api.url)
        model = "gemini-cli:gemini-2.5-pro"
        ended = evercontext("evaluate", str(document), "--judge", model, "--json", env=env)
    assert ended.code in (0, 4), ended.err
    assert "gemini-cli" in ended.out
