"""One Python for every command, wherever the user keeps it, and in each layer of the sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from evercontext.process.sandbox import Layer, available
from evercontext.workspace.interpreters import environment_of, readable
from tests.cli.command import Ended, evercontext
from tests.journeys.story import call, script
from tests.tiers import slow

WORKS = {finding.layer: finding for finding in available()}
BASE = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
if shutil.which("python3", path=SYSTEM_PATH) is None:
    # Beside other programs of its own, such as a pytest: only where nothing else is there.
    SYSTEM_PATH += f":{BASE.parent}"


# Each of them starts the command: one layer is enough for the quick tests.
@pytest.fixture(params=[slow(Layer.BUBBLEWRAP), Layer.LANDLOCK])
def layer(request: pytest.FixtureRequest) -> Layer:
    layer: Layer = request.param
    if not WORKS[layer].works:
        pytest.skip(f"{layer}: {WORKS[layer].why}")
    return layer


def make_environment(place: Path, *, copies: bool = False, pytest_too: bool = False) -> Path:
    """A real virtual environment with a package that no other Python has."""
    kind = ["--copies"] if copies else ["--symlinks"]
    subprocess.run([BASE, "-m", "venv", "--without-pip", *kind, place], check=True)
    packages = next(place.glob("lib/python3*/site-packages"))
    (packages / "only_here.py").write_text("ANSWER = 42\n")
    if pytest_too:
        (packages / "more.pth").write_text(sysconfig.get_path("purelib") + "\n")
        program = place / "bin/pytest"
        program.write_text(f"#!{place}/bin/python\nimport pytest\npytest.console_main()\n")
        program.chmod(0o755)
    return place


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "shop.py").write_text("def total():\n    return 42\n")
    (root / "tests/__init__.py").write_text("")
    (root / "tests/test_shop.py").write_text(
        "import unittest\nimport only_here\nimport shop\n\n\nclass ShopTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(shop.total(), only_here.ANSWER)\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def fix(project: Path, layer: Layer, **env: str) -> Ended:
    given = {"EC_SANDBOX": layer.value, "PATH": SYSTEM_PATH, "VIRTUAL_ENV": "", **env}
    return evercontext("fix", cwd=project, env=given)


def activated(place: Path) -> dict[str, str]:
    return {"VIRTUAL_ENV": str(place), "PATH": f"{place}/bin:{SYSTEM_PATH}"}


def entries(project: Path) -> set[str]:
    """What lies in the project, apart from git's own folder and ours."""
    tree = (path.relative_to(project) for path in project.rglob("*"))
    return {str(path) for path in tree if path.parts[0] not in (".git", ".evercontext")}


def test_an_active_environment_outside_the_project_is_used(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """S3: checks run in the virtual environment that the user activated, wherever it lies."""
    environment = make_environment(tmp_path / "srv/environment")
    before = entries(project)
    ended = fix(project, layer, **activated(environment))
    assert (ended.code, ended.out) == (0, "green, nothing to fix\n"), ended.err
    assert "1 passed" in ended.err
    assert entries(project) == before


def test_a_copied_python_finds_the_one_it_was_made_from(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """S3: an environment may hold a copy of its Python instead of a link."""
    ended = fix(project, layer, **activated(make_environment(tmp_path / "copied", copies=True)))
    assert ended.code == 0, (ended.out, ended.err)


def test_a_conda_environment_is_used(project: Path, tmp_path: Path, layer: Layer) -> None:
    """S3: the shape of conda: a whole Python in a prefix, named by CONDA_PREFIX."""
    prefix = make_environment(tmp_path / "conda/envs/shop")
    (prefix / "conda-meta").mkdir()
    given = {"CONDA_PREFIX": str(prefix), "PATH": f"{prefix}/bin:{SYSTEM_PATH}"}
    ended = fix(project, layer, **given)
    assert ended.code == 0, (ended.out, ended.err)


def test_the_python_on_path_is_seen_through_its_links(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """S3: PATH leads to a folder of links, these to an environment elsewhere."""
    environment = make_environment(tmp_path / "deep/environment")
    links = tmp_path / "bin"
    links.mkdir()
    (links / "python3").symlink_to(environment / "bin/python3")
    (project / "tests/test_shop.py").write_text(
        "import sys\nimport unittest\n\n\nclass PythonTest(unittest.TestCase):\n"
        f"    def test_it(self):\n        self.assertEqual(sys.executable, '{links}/python3')\n"
    )
    ended = fix(project, layer, PATH=f"{links}:{SYSTEM_PATH}")
    assert (ended.code, ended.out) == (0, "green, nothing to fix\n"), ended.err


def test_the_projects_own_environment_comes_first_for_every_command(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """F8: run.test, run_command and a plan's checks use the project's .venv."""
    make_environment(project / ".venv")
    other = make_environment(tmp_path / "other")
    line = "python -c 'import sys; print(sys.prefix)'; python3 -m unittest -q; echo $VIRTUAL_ENV"
    model = script(
        tmp_path / "script.jsonl",
        {"tool_calls": [call("run_command", command=line), call("run.test")]},
        {"text": "done"},
    )
    ended = evercontext(
        *("run", "--task", "test", "--model", model, "--output-format", "stream-json"),
        cwd=project,
        env={"EC_SANDBOX": layer.value, **activated(other)},
    )
    assert ended.code == 0, ended.err
    assert ended.out.count(f"{project}/.venv") >= 2
    assert str(other) not in ended.out.replace(str(project), "")
    assert "No module named" not in ended.out


def test_pytest_passes_where_python_dash_m_pytest_passes(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """F8: the detected command finds the modules of the root, as `python -m pytest` does."""
    (project / "tests/__init__.py").unlink()
    ended = fix(project, layer, **activated(make_environment(tmp_path / "env", pytest_too=True)))
    assert (ended.code, ended.out) == (0, "green, nothing to fix\n"), ended.err
    assert "-m pytest -q" in ended.err
    assert entries(project) == {"shop.py", "tests", "tests/test_shop.py"}


@pytest.mark.parametrize("git", [True, False])
def test_one_file_without_tests_is_green_and_nothing_is_left(
    tmp_path: Path, layer: Layer, git: bool
) -> None:
    """S5: the check of syntax writes nothing into the project."""
    root = tmp_path / "new"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    if git:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    ended = fix(root, layer)
    assert (ended.code, ended.out) == (0, "green, nothing to fix\n"), ended.err
    assert entries(root) == {"a.py"}


def test_a_mistake_of_syntax_is_red_and_named(tmp_path: Path, layer: Layer) -> None:
    root = tmp_path / "new"
    root.mkdir()
    (root / "a.py").write_text("def f(:\n")
    ended = fix(root, layer)
    assert ended.code == 4
    assert "a.py:1" in ended.out
    assert entries(root) == {"a.py"}


@pytest.mark.slow
def test_a_refusal_names_the_path_and_the_setting_and_the_setting_cures_it(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """S3: what a command may not read is named, and a user-level setting shows it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "facts.txt").write_text("forty-two")
    line = f"cat {data}/facts.txt"
    model = script(
        tmp_path / "script.jsonl",
        {"tool_calls": [call("run_command", command=line)]},
        {"text": "done"},
    )
    command = ("run", "--task", "read", "--model", model, "--output-format", "stream-json")
    env = {"EC_SANDBOX": layer.value}
    refused = evercontext(*command, cwd=project, env=env)
    assert f"commands may not read {data}/facts.txt" in refused.out
    assert "evercontext config set sandbox_read" in refused.out
    assert "forty-two" not in refused.out
    (project / "evercontext.toml").write_text(f"sandbox_read = [{str(data)!r}]\n")
    assert "forty-two" not in evercontext(*command, cwd=project, env=env).out
    assert evercontext("config", "set", "sandbox_read", str(data)).code == 0
    assert "forty-two" in evercontext(*command, cwd=project, env=env).out


def test_a_program_that_may_not_be_read_is_named(
    project: Path, tmp_path: Path, layer: Layer
) -> None:
    """S3: no bare PermissionError: the path and the setting."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    shutil.copy("/bin/true", hidden / "check")
    given = {"EC_SANDBOX": layer.value, "EC_LINT_CMD": f"{hidden}/check", "PATH": SYSTEM_PATH}
    ended = evercontext("fix", "--no-test", cwd=project, env=given)
    assert f"commands may not read {hidden}/check" in ended.err + ended.out
    shown = evercontext(
        "fix", "--no-test", cwd=project, env={**given, "EC_SANDBOX_READ": str(hidden)}
    )
    assert shown.code == 0, (shown.out, shown.err)


def test_a_project_cannot_show_a_secret_by_naming_it_as_its_python(tmp_path: Path) -> None:
    """S3: links and pyvenv.cfg of a project are a stranger's word."""
    root, secret = tmp_path / "root", tmp_path / "secret"
    secret.mkdir()
    (secret / "python3").write_text("key")
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python3").symlink_to(secret / "python3")
    (root / ".venv/pyvenv.cfg").write_text(f"home = {secret}\n")
    shown = readable(root, {"PATH": "", "HOME": str(tmp_path)})
    assert not [place for place in shown if not place.is_relative_to(root)]


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH"])
def test_a_search_path_never_shows_a_whole_home(tmp_path: Path, name: str) -> None:
    home, root = tmp_path / "home", tmp_path / "home/work/project"
    root.mkdir(parents=True)
    path = os.pathsep.join(map(str, (home, tmp_path, "/", root.parent, home / "bin", "relative")))
    shown = readable(root, {name: path, "HOME": str(home)})
    assert [place for place in shown if place.is_relative_to(tmp_path)] == [home / "bin"]


def test_configuration_of_the_system_is_no_part_of_a_python() -> None:
    shown = readable(Path("/nowhere"), {"PATH": "/bin:/usr/bin:/sbin", "HOME": "/root"})
    assert not [place for place in shown if place.is_relative_to("/etc") or place == Path("/")]


def test_the_own_environment_wins_over_the_active_one(tmp_path: Path) -> None:
    active = tmp_path / "active"
    for place in (tmp_path / ".venv/bin", active / "bin"):
        place.mkdir(parents=True)
    (active / "bin/python").write_text("")
    given = {"PATH": "/usr/bin", "VIRTUAL_ENV": str(active)}
    assert environment_of(tmp_path, given)["PATH"] == f"{active}/bin:/usr/bin"
    (tmp_path / ".venv/bin/python").write_text("")
    assert environment_of(tmp_path, given) == {
        "PATH": f"{tmp_path}/.venv/bin:/usr/bin",
        "VIRTUAL_ENV": f"{tmp_path}/.venv",
    }
