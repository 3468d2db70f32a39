from __future__ import annotations

import subprocess
from pathlib import Path

from evercontext.cli.chat.status_line import branch_of, fitting

PARTS = [(1, "agent mode"), (3, "context 97% left"), (5, "main"), (4, "model"), (6, "/help")]


def test_what_matters_least_goes_first_where_it_is_narrow() -> None:
    """A1: the status line fits the width, in its order."""
    assert fitting(PARTS, 80) == "agent mode · context 97% left · main · model · /help"
    assert fitting(PARTS, 45) == "agent mode · context 97% left · main · model"
    assert fitting(PARTS, 40) == "agent mode · context 97% left · model"
    assert fitting(PARTS, 3) == "agent mode"


def test_the_branch_is_read_without_running_git(tmp_path: Path) -> None:
    """A1."""
    assert branch_of(tmp_path / "nowhere") == ""
    subprocess.run(["git", "init", "-q", "-b", "topic", tmp_path], check=True)
    folder = tmp_path / "below"
    folder.mkdir()
    assert branch_of(folder) == "topic"
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef\n")
    assert branch_of(folder) == "01234567"
