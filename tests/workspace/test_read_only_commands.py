from __future__ import annotations

import pytest

from evercontext.workspace.read_only_commands import only_looks


@pytest.mark.case(80)
@pytest.mark.parametrize(
    "line",
    [
        "pytest -q",
        "python -m pytest tests/ -k one",
        "python3.12 -m unittest",
        "PYTHONPATH=src .venv/bin/pytest -x 2>&1 | tail -20",
        "cd app && npm test",
        "git status; git diff --stat",
        "sleep 30",
        "ruff check . && mypy src",
        "grep -rn 'x > y' src",
    ],
)
def test_commands_that_are_known_to_look(line: str) -> None:
    assert only_looks(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ruff check --fix .",
        "ruff format .",
        "pytest --snapshot-update",
        "jest -u",
        "pytest > report.txt",
        "pytest; sed -i s/a/b/ a.py",
        "python gen.py",
        "python -m black .",
        "echo $(rm a.py)",
        "git checkout a.py",
        "npm run build",
        "cat a.py | tee b.py",
        "sh -c 'echo x > a.py'",
        "$TOOL a.py",
        "env X=1 rm a.py",
    ],
)
def test_everything_else_may_have_written(line: str) -> None:
    assert not only_looks(line)
