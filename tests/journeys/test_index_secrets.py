"""Canaries in a project: none reaches the index, a log, an answer or a prompt by way of search."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.testing import git, tiny_repository
from tests.cli.command import evercontext, home
from tests.journeys.story import call, script

SHAPED = "sk-" + "c4n4ry7x" * 4
PLAIN = "zugzwang-quetzal-0815"
"""Looks like nothing: it is a secret because a variable of that kind holds it."""
ENVIRONMENT = {"DEPLOY_PASSWORD": PLAIN}
PIECES = ("c4n4ry", "zugzwang", "quetzal", "0815")


def _project(tmp_path: Path) -> Path:
    return tiny_repository(
        tmp_path / "project",
        {
            ".env": f"KEY={SHAPED}\n",
            "config/.env.production": PLAIN,
            "deploy/secrets.yaml": f"password: {PLAIN}\n",
            "deploy/id_rsa": SHAPED,
            "app.py": f"def deploy():\n    login('{PLAIN}')\n    return '{SHAPED}'\n",
            "compose.yaml": f"services:\n  db:\n    environment:\n      DB_PASSWORD: {PLAIN}\n",
            "README.md": f"# Deploy\n\nLog in with {PLAIN} and {SHAPED}.\n",
        },
    )


def _holding(folder: Path) -> list[str]:
    """Files below a folder in which a piece of a canary can be read."""
    return [
        f"{file}: {piece}"
        for file in folder.rglob("*")
        if file.is_file()
        for piece in PIECES
        if piece.encode() in file.read_bytes().lower()
    ]


@pytest.mark.slow
@pytest.mark.case(134, 135)
def test_no_canary_gets_out_by_way_of_the_index(tmp_path: Path) -> None:
    project = _project(tmp_path)
    shown = ""
    for command in (
        ("index", "--verbose"),
        ("search", "how is it deployed, which password", "--explain"),
        ("search", "deploy login", "--json"),
        ("search", "README log in with"),
    ):
        ended = evercontext(*command, cwd=project, env=ENVIRONMENT)
        assert ended.code == 0, ended.err
        shown += ended.out + ended.err
    assert "app.py" in shown
    assert "[redacted]" in shown
    git(project, "commit", "-q", "--allow-empty", "-m", "x")
    assert evercontext("hook", "drain", cwd=project, env=ENVIRONMENT).code == 0
    model = script(
        tmp_path / "s.jsonl",
        {"tool_calls": [call("search_code", query="deploy login password")]},
        {"when": "|".join(PIECES), "text": "A canary sings."},
        {"text": "Nothing to see."},
    )
    ended = evercontext("run", "-t", "look", "-m", model, cwd=project, env=ENVIRONMENT)
    assert "Nothing to see." in ended.out, ended.err
    shown += ended.out + ended.err
    assert [piece for piece in PIECES if piece in shown.lower()] == []
    assert (project / ".evercontext/index.db").is_file()
    assert _holding(project / ".evercontext") == []
    assert _holding(home()) == []
