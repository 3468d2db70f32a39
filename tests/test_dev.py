"""The repository's own two commands, where they can be tried without installing anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent


def dev(place: Path, *arguments: str, hide: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Run a copy of dev.py in ``place`` by a Python that lacks the modules of ``hide``."""
    shutil.copy(HERE / "dev.py", place / "dev.py")
    (place / "blind").mkdir(exist_ok=True)
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in hide)]
    (place / "blind" / "sitecustomize.py").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "dev.py", *arguments],
        cwd=place,
        env={"PATH": "/nowhere", "PYTHONPATH": str(place / "blind")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_help_names_both_commands(tmp_path: Path) -> None:
    code, out, _ = dev(tmp_path, "--help")
    assert code == 0
    assert "try" in out
    assert "check" in out


def test_an_unknown_part_is_one_line_with_the_known_ones(tmp_path: Path) -> None:
    code, _, err = dev(tmp_path, "check", "nonsense")
    assert code == 1
    assert err.count("\n") == 1
    assert "format, lint, types, layers, docs, tests" in err
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_cannot_make_environments_says_what_to_install(tmp_path: Path) -> None:
    code, _, err = dev(tmp_path, "check", hide=("ensurepip", "virtualenv", "pip"))
    assert code == 1
    assert err.count("\n") == 1
    assert "apt-get install python3-venv" in err
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
def test_the_readme_names_both_commands(page: str) -> None:
    text = (HERE / page).read_text(encoding="utf-8")
    assert "python3 dev.py try\n" in text
    assert "python3 dev.py check\n" in text


def test_ci_runs_what_a_developer_runs() -> None:
    assert "python3 dev.py check" in (HERE / ".ci" / "run").read_text()
    assert "run: .ci/run" in (HERE / ".github" / "workflows" / "check.yml").read_text()
