from __future__ import annotations

import json
from pathlib import Path

import pytest

from evercontext.workspace.project_commands import Kind, ProjectCommands


def project(root: Path, *files: str, **contents: str) -> ProjectCommands:
    """A project whose programs are all installed, in its own bin directory."""
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    for name, content in contents.items():
        (root / name.replace("__", ".")).write_text(content)
    return ProjectCommands(root, {"PATH": ""})


def install(root: Path, *names: str) -> None:
    (root / ".venv/bin").mkdir(parents=True)
    for name in names:
        (root / ".venv/bin" / name).write_text("#!/bin/sh\n")
        (root / ".venv/bin" / name).chmod(0o755)


def test_python_with_pytest_and_ruff(tmp_path: Path) -> None:
    install(tmp_path, "python", "pytest", "ruff")
    found = project(tmp_path, "pyproject.toml", "tests/test_a.py")
    programs = str(tmp_path / ".venv/bin")
    assert found.commands("test") == [(f"{programs}/python", "-m", "pytest", "-q")]
    assert found.commands("lint") == [(f"{programs}/ruff", "check", ".")]
    assert found.commands("format") == [(f"{programs}/ruff", "format", ".")]


def test_python_with_nothing_installed_has_unittest_and_a_syntax_check(tmp_path: Path) -> None:
    install(tmp_path, "python")
    found = project(tmp_path, "app.py", "test_app.py")
    assert found.commands("test")[0][1:] == ("-m", "unittest", "discover")
    assert found.commands("lint")[0][1].endswith("/compile_check.py")
    assert found.commands("format") == []


def test_python_without_tests_has_no_test_command(tmp_path: Path) -> None:
    install(tmp_path, "python", "pytest")
    assert project(tmp_path, "app.py").commands("test") == []


@pytest.mark.parametrize(
    ("lock", "manager"),
    [("package-lock.json", "npm"), ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")],
)
def test_node_uses_its_scripts_and_its_manager(tmp_path: Path, lock: str, manager: str) -> None:
    scripts = {"scripts": {"test": "vitest run", "lint": "eslint ."}}
    found = project(tmp_path, lock, package__json=json.dumps(scripts))
    assert found.commands("test") == [(manager, "run", "test")]
    assert found.commands("lint") == [(manager, "run", "lint")]
    assert found.commands("format") == []


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"scripts": 3}', '{"scripts": {"test": "echo no test specified"}}']
)
def test_a_broken_or_empty_package_file_offers_nothing(tmp_path: Path, content: str) -> None:
    assert project(tmp_path, package__json=content).commands("test") == []


@pytest.mark.parametrize(
    ("marker", "kind", "start"),
    [
        ("go.mod", "test", ("go", "test")),
        ("go.mod", "format", ("gofmt", "-l")),
        ("Cargo.toml", "test", ("cargo", "test")),
        ("Cargo.toml", "lint", ("cargo", "clippy")),
    ],
)
def test_go_and_rust(tmp_path: Path, marker: str, kind: Kind, start: tuple[str, ...]) -> None:
    assert project(tmp_path, marker).commands(kind)[0][:2] == start


def test_a_makefile_speaks_when_nothing_else_does(tmp_path: Path) -> None:
    found = project(tmp_path, Makefile="VAR := x\nfmt:\n\tgo\ncheck: a\n\tgo\n")
    assert found.commands("format") == [("make", "fmt")]
    assert found.commands("test") == [("make", "check")]


def test_two_languages_are_both_checked(tmp_path: Path) -> None:
    found = project(tmp_path, "go.mod", "Cargo.toml")
    assert [command[0] for command in found.commands("test")] == ["go", "cargo"]


def test_an_empty_folder_has_no_command(tmp_path: Path) -> None:
    assert project(tmp_path).commands("lint") == []
