"""The wheel and the source distribution, as far as they can be tried without a registry."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def package() -> ModuleType:
    spec = importlib.util.spec_from_file_location("package", HERE / "scripts" / "package.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its own module up.
    sys.modules["package"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(package: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    return package.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
def test_everything_is_in_them_and_nothing_else(package: ModuleType, built: Any) -> None:
    assert package.problems(built) == []


@pytest.mark.slow
def test_a_missing_file_is_noticed(package: ModuleType, built: Any, tmp_path: Path) -> None:
    thin = tmp_path / built.wheel.name
    with zipfile.ZipFile(built.wheel) as whole, zipfile.ZipFile(thin, "w") as copy:
        for name in whole.namelist():
            if not name.endswith("queries/python.scm"):
                copy.writestr(name, whole.read(name))
        copy.writestr("tests/conftest.py", "")
    found = package.problems(package.Built(thin, built.sdist))
    assert found == [
        "the wheel lacks evercontext/index/queries/python.scm",
        "the wheel holds tests/conftest.py",
    ]


@pytest.mark.slow
def test_the_installed_wheel_runs_from_its_own_place(built: Any, tmp_path: Path) -> None:
    """Its dependencies come from here: a registry would be needed for others."""
    if shutil.which("pip") is None and not Path(sys.executable).with_name("pip").exists():
        pytest.skip("pip is not installed")
    place = tmp_path / "place"
    options = ["--no-deps", "--no-index", "--no-compile", "-q", "--target", str(place)]
    install = [sys.executable, "-m", "pip", "install", *options, str(built.wheel)]
    subprocess.run(install, check=True, timeout=120)
    code = (
        "import evercontext, sys; from evercontext.settings.installation import this_installation;"
        "from evercontext.index.languages import grammar_of; assert grammar_of('python');"
        "print(evercontext.__file__); print(this_installation().source)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    where, source = done.stdout.split()
    assert Path(where).is_relative_to(place)
    assert source == str(built.wheel)
