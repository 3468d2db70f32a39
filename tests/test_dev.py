"""The repository's own commands, where they can be tried without installing anything."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def dev(
    place: Path, *arguments: str, hide: tuple[str, ...] = (), **environment: str
) -> tuple[int, str, str]:
    """Run a copy of dev.py in ``place`` by a Python that lacks the modules of ``hide``."""
    shutil.copy(HERE / "dev.py", place / "dev.py")
    (place / "blind").mkdir(exist_ok=True)
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in hide)]
    (place / "blind" / "sitecustomize.py").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "dev.py", *arguments],
        cwd=place,
        env={"PATH": "/nowhere", "PYTHONPATH": str(place / "blind"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_real_programs_are_not_checked_by_part(tmp_path: Path) -> None:
    code, _, err = dev(tmp_path, "check", "--real", "lint")
    assert (code, err) == (
        1,
        "dev.py: --real has no parts; choose tests with --pytest=-k --pytest=NAME\n",
    )


def test_help_names_both_commands(tmp_path: Path) -> None:
    code, out, _ = dev(tmp_path, "--help")
    assert code == 0
    assert "try" in out
    assert "check" in out


@pytest.mark.parametrize(
    ("locale", "task"),
    [("C.UTF-8", "Create Hello World in app"), ("ja_JP.UTF-8", "app に Hello World を作成")],
)
def test_the_task_to_try_is_in_the_language_of_the_locale(
    tmp_path: Path, locale: str, task: str
) -> None:
    code, out, _ = dev(
        tmp_path, "try", "--help", LANG=locale, PYTHONIOENCODING="utf-8", COLUMNS="200"
    )
    assert code == 0
    assert f"what to ask for ({task})" in out


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


def test_ci_runs_what_a_developer_runs_and_the_slow_tests() -> None:
    """S10: what the quick tier leaves out is run by CI."""
    assert "python3 dev.py check --all" in (HERE / ".ci" / "run").read_text()
    assert "run: .ci/run" in (HERE / ".github" / "workflows" / "check.yml").read_text()


BESIDE_ANOTHER = """
import sys
def test_leaves_something(): sys.left = True
def test_minds_it(): assert not hasattr(sys, "left")
"""


def checked(place: Path, tests: str) -> bool:
    """Let dev.py run these tests, in a repository that holds nothing else."""
    shutil.copy(HERE / "dev.py", place / "dev.py")
    (place / ".venv").symlink_to(sys.prefix)
    (place / "test_it.py").write_text(tests)
    passed: bool = loaded(place / "dev.py").tests_pass([])
    return passed


def test_a_test_that_passes_alone_is_named_flaky(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path, BESIDE_ANOTHER)
    last = capfd.readouterr().out.splitlines()[-1]
    assert last == "flaky: test_it.py::test_minds_it (failed beside others, passed alone)"


def test_a_test_that_fails_alone_too_has_failed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not checked(tmp_path, BESIDE_ANOTHER + "def test_fails(): assert False\n")
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "failed: test_it.py::test_fails (failed beside others, did not pass alone)",
        "flaky: test_it.py::test_minds_it (failed beside others, passed alone)",
    ]


def test_a_test_that_is_skipped_alone_has_not_passed(tmp_path: Path) -> None:
    skips = 'def test_b():\n    if not hasattr(sys, "left"): __import__("pytest").skip()\n'
    assert not checked(tmp_path, f"{BESIDE_ANOTHER}{skips}    assert False\n")


@pytest.mark.parametrize("tests", ["import nothing_of_that_name", "def f(): pass", "x" * 9])
def test_tests_that_do_not_start_have_not_passed(tmp_path: Path, tests: str) -> None:
    assert not checked(tmp_path, tests)


def test_many_failures_are_no_accident(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each is not run again when a change broke most of them."""
    fail = "\n".join(f"def test_{number}(): assert False" for number in range(40))
    assert not checked(tmp_path, fail)
    assert "once more" not in capfd.readouterr().out


def loaded(path: Path) -> ModuleType:
    """A copy of dev.py as a module."""
    spec = importlib.util.spec_from_file_location("dev", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def extras() -> dict[str, tuple[str, ...]]:
    """What dev.py installs for each command, as it says itself."""
    named: dict[str, tuple[str, ...]] = loaded(HERE / "dev.py").EXTRAS
    return named


def locked(name: str) -> dict[str, list[Requirement]]:
    """The pins of a lock by package."""
    pins: dict[str, list[Requirement]] = {}
    text = (HERE / "locks" / f"{name}.txt").read_text(encoding="utf-8")
    for line in text.replace("\\\n", " ").splitlines():
        pin = Requirement(line.split("--hash")[0])
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), f"{pin} has no hash"
        pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


def declared(chosen: tuple[str, ...]) -> list[Requirement]:
    """What pyproject.toml asks for, with these extras and what builds the package."""
    text = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    lines = [*text["project"]["dependencies"], *text["build-system"]["requires"]]
    for extra in chosen:
        lines += text["project"]["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def applies(requirement: Requirement, python: str) -> bool:
    versions = {"python_version": python, "python_full_version": f"{python}.0"}
    return requirement.marker is None or requirement.marker.evaluate(dict(versions))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", ["check", "try"])
def test_the_lock_covers_what_pyproject_asks_for(name: str, python: str) -> None:
    """S2: what is installed does not drift; `python3 dev.py lock` repairs a failure here."""
    pins = locked(name)
    for requirement in declared(extras()[name]):
        if not applies(requirement, python):
            continue
        there = [
            pin for pin in pins.get(canonicalize_name(requirement.name), []) if applies(pin, python)
        ]
        assert len(there) == 1, f"{requirement} is not locked once; run: python3 dev.py lock"
        (version,) = there[0].specifier
        assert version.operator == "=="
        assert requirement.specifier.contains(version.version), (
            f"{requirement} is locked at {version.version}; run: python3 dev.py lock"
        )


def test_both_locks_agree() -> None:
    smaller, larger = locked("try"), locked("check")
    assert set(smaller) <= set(larger)
    for name, pins in smaller.items():
        assert {str(pin.specifier) for pin in pins} == {str(pin.specifier) for pin in larger[name]}


@pytest.mark.parametrize("name", ["check", "try"])
def test_a_lock_names_no_place_to_fetch_from(name: str) -> None:
    text = (HERE / "locks" / f"{name}.txt").read_text(encoding="utf-8")
    for word in ("://", "index", "find-links", "file:", "@ "):
        assert word not in text
