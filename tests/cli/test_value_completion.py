"""Shells complete values, not only names (A7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import evercontext
from tests.journeys.story import script


def offered(words: str, cwd: Path, program: str = "EVERCONTEXT") -> list[str]:
    ended = evercontext(
        cwd=cwd,
        env={
            f"_{program}_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
    )
    return [line.split(",")[1] for line in ended.out.splitlines() if line]


def test_settings_and_the_options_of_the_chat(tmp_path: Path) -> None:
    """A7."""
    assert "model_name" in offered("evercontext config set model", tmp_path)
    assert "--permission-mode" in offered("evercontext --perm", tmp_path)
    assert offered("evercontext trace show ", tmp_path) == []


@pytest.mark.slow
def test_sessions_and_traces_of_this_project(tmp_path: Path) -> None:
    """A7."""
    project = tmp_path / "project"
    project.mkdir()
    model = script(tmp_path / "s.jsonl", {"text": "Hello."})
    assert evercontext("-p", "say hello", "-m", model, cwd=project).code == 0
    (trace,) = offered("evercontext trace show ", project)
    assert len(trace) == 8
    last, session = offered("evercontext chat -r ", project)
    assert last == "last"
    assert offered(f"evercontext sessions show {session[:12]}", project) == [session]
    assert offered("evercontext chat -r ", tmp_path) in ([], ["last"])
