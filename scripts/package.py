#!/usr/bin/env python3
"""Build the wheel and the source distribution, look into them, and install them in every way.

``python scripts/package.py`` needs a package registry; ``--offline`` only builds and looks.
``python3 dev.py package`` runs it in the environment of the checks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE / "src" / "evercontext"
NEEDED_IN_SDIST = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/evercontext")
_NOT_SHIPPED = ("__pycache__", ".pyc")


@dataclass(frozen=True)
class Built:
    """The two files that would be published."""

    wheel: Path
    sdist: Path


def build(folder: Path, source: Path = HERE) -> Built:
    """Build both into ``folder``; hatchling has to be installed, no network is used."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    return Built(next(folder.glob("*.whl")), next(folder.glob("*.tar.gz")))


def problems(built: Built, source: Path = SOURCE) -> list[str]:
    """Return what is missing from the two files, or does not belong there."""
    with zipfile.ZipFile(built.wheel) as wheel:
        shipped = set(wheel.namelist())
        info = next(name for name in shipped if name.endswith(".dist-info/METADATA"))
        about = wheel.read(info).decode()
        entries = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
    expected = {f"evercontext/{path}" for path in _files_of(source)}
    code = {name for name in shipped if name.startswith("evercontext/")}
    strange = {name for name in shipped - code if ".dist-info/" not in name}
    found = [f"the wheel lacks {name}" for name in sorted(expected - code)]
    found += [f"the wheel holds {name}" for name in sorted((code - expected) | strange)]
    found += [
        f"no command {name}" for name in ("evercontext", "nebula") if f"{name} = " not in entries
    ]
    for line in ("License-Expression: MIT", "Requires-Python: >=3.11", "Provides-Extra: embedded"):
        if line not in about:
            found.append(f"the metadata lack {line!r}")
    with tarfile.open(built.sdist) as archive:
        inside = [name.partition("/")[2] for name in archive.getnames()]
    for name in NEEDED_IN_SDIST:
        if not any(path == name or path.startswith(f"{name}/") for path in inside):
            found.append(f"the source distribution lacks {name}")
    return found


def _files_of(source: Path) -> Iterable[str]:
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if path.is_file() and not any(part in name for part in _NOT_SHIPPED):
            yield name


@dataclass(frozen=True)
class Way:
    """One way to install: the program it needs, and what it makes of a wheel."""

    name: str
    program: str
    install: Callable[[str, Path, Path], list[str]]
    """Returns the command that runs ``evercontext``; raises CalledProcessError."""
    detected: str


def _by_pip(python: str, wheel: Path, place: Path) -> list[str]:
    _run([python, "-m", "venv", str(place / "venv")], place)
    _run([str(place / "venv/bin/python"), "-m", "pip", "install", "-q", str(wheel)], place)
    return [str(place / "venv/bin/evercontext")]


def _by_uv_tool(uv: str, wheel: Path, place: Path) -> list[str]:
    _run([uv, "tool", "install", "-q", str(wheel)], place)
    return [str(place / "bin" / "evercontext")]


def _by_uvx(uv: str, wheel: Path, place: Path) -> list[str]:
    return [uv, "tool", "run", "-q", "--from", str(wheel), "evercontext"]


def _by_pipx(pipx: str, wheel: Path, place: Path) -> list[str]:
    _run([pipx, "install", "-q", str(wheel)], place)
    return [str(place / "bin" / "evercontext")]


WAYS = (
    Way("pip", sys.executable, _by_pip, "pip"),
    Way("uv tool", "uv", _by_uv_tool, "uv tool"),
    Way("uvx", "uv", _by_uvx, "uvx"),
    Way("pipx", "pipx", _by_pipx, "pipx"),
)


def try_way(way: Way, file: Path, place: Path) -> str:
    """Install ``file`` in one way, use the command, and return what is wrong, or nothing."""
    program = shutil.which(way.program)
    if program is None:
        return f"skipped: {way.program} is not installed"
    try:
        command = way.install(program, file, place)
        version = _run([*command, "--version"], place)
        state = json.loads(_run([*command, "setup", "--show", "--json"], place))
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[:3]} ended with {error.returncode}: {error.stderr[-300:]}"
    if not version.startswith("evercontext "):
        return f"--version said {version!r}"
    if state["installed_with"] != way.detected:
        return f"it takes itself for installed with {state['installed_with']}"
    return ""


def _run(command: list[str], place: Path) -> str:
    own = {"UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "PIPX_HOME": "pipx"}
    own |= {"PIPX_BIN_DIR": "bin", "EC_HOME": "home"}
    environment = os.environ | {name: str(place / part) for name, part in own.items()}
    # Neither the environment that runs this nor its settings may help.
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> int:
    """Build, look, install; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--offline", action="store_true", help="build and look, install nothing")
    offline = parser.parse_args().offline
    with tempfile.TemporaryDirectory(prefix="evercontext-package-") as scratch:
        built = build(Path(scratch))
        wrong = problems(built)
        for file in (built.wheel, built.sdist):
            print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB")
        for way in () if offline else WAYS:
            for file in (built.wheel, built.sdist):
                place = Path(scratch, f"{way.name} {file.suffix}".replace(" ", "-"))
                place.mkdir()
                said = try_way(way, file, place)
                print(f"{way.name:<8} {file.suffix:<5} {said or 'ok'}", flush=True)
                if said and not said.startswith("skipped"):
                    wrong.append(f"{way.name}: {said}")
                shutil.rmtree(place, ignore_errors=True)
    for line in wrong:
        print(f"package: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
