"""Install the real programs into a cache folder, each version beside the others.

    python -m tests.real.install              # all of them
    python -m tests.real.install codex acpx   # some

What cannot be installed leaves its reason in the cache; its tests are skipped with that reason.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.real.registry import CACHE, PROGRAMS, RealProgram

_SECONDS = 900
_LAUNCHER = """\
#!/bin/sh
exec "{node}" "{script}" "$@"
"""


class NotInstalled(Exception):
    """Say why a program is not there."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One version of a program, ready to start."""

    program: RealProgram
    version: str
    folder: Path
    """Where it was installed; ``node_modules`` or ``bin`` lies in it."""

    @property
    def commands(self) -> Path:
        """The folder of its commands, for PATH."""
        if self.program.source == "pypi":
            return self.folder / "bin"
        own = self.folder / "launchers"
        return own if own.is_dir() else self.folder / "node_modules" / ".bin"

    @property
    def command(self) -> str:
        """The program's file."""
        return str(self.commands / self.program.command)

    @property
    def path(self) -> str:
        """A search path that begins with the program's commands."""
        return f"{self.commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def locate(name: str, version: str = "") -> Installed:
    """Return an installed program; ``NotInstalled`` says why it is not there."""
    program = PROGRAMS[name]
    version = version or program.versions[-1]
    folder = CACHE / program.source / f"{name}-{version}"
    installed = Installed(program, version, folder)
    if program.source == "bundled":
        _check_bundled(program, version)
    elif not (folder / ".done").is_file():
        reason = folder.with_suffix(".failed")
        hint = "not installed; python3 dev.py check --real installs it"
        raise NotInstalled(reason.read_text().strip() if reason.is_file() else hint)
    return installed


def _check_bundled(program: RealProgram, version: str) -> None:
    try:
        present = importlib.metadata.version(program.package)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(f"{program.package} is not installed") from None
    if present != version:
        raise NotInstalled(f"{program.package} is {present} here, not {version}")


def install(program: RealProgram, version: str) -> str | None:
    """Bring one version; return why that failed, None if it is there."""
    folder = CACHE / program.source / f"{program.name}-{version}"
    if program.source == "bundled" or (folder / ".done").is_file():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = folder.with_suffix(".failed")
    try:
        bring = _by_npm if program.source == "npm" else _by_pip
        bring(program, version, folder)
    except NotInstalled as problem:
        failed.write_text(str(problem))
        return str(problem)
    failed.unlink(missing_ok=True)
    (folder / ".done").touch()
    return None


def _by_npm(program: RealProgram, version: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not installed")
    options = ["--no-audit", "--no-fund", "--loglevel=error"]
    _run([npm, "install", *options, f"{program.package}@{version}"], folder)
    if program.newer_node:
        _write_launcher(program, folder)


def _write_launcher(program: RealProgram, folder: Path) -> None:
    """Start a program by the Node of the registry, whatever the system's is."""
    node = CACHE / "npm" / f"node-{PROGRAMS['node'].versions[-1]}" / "node_modules/.bin/node"
    launcher = folder / "launchers" / program.command
    launcher.parent.mkdir()
    script = (folder / "node_modules" / ".bin" / program.command).resolve()
    launcher.write_text(_LAUNCHER.format(node=node, script=script))
    launcher.chmod(0o755)


def _by_pip(program: RealProgram, version: str, folder: Path) -> None:
    name, bracket, extras = program.package.partition("[")
    requirement = f"{name}{bracket}{extras}=={version}"
    if uv := shutil.which("uv"):
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], folder.parent)
        python = str(folder / "bin" / "python")
        _run([uv, "pip", "install", "--quiet", "--python", python, requirement], folder)
        return
    _run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    _run([*pip, "--disable-pip-version-check", "--prefer-binary", requirement], folder)


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{Path(command[0]).name}: {error}") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        words = " ".join(lines)[-200:] or f"exit {done.returncode}"
        raise NotInstalled(f"{Path(command[0]).name} could not install it: {words}")


def main(names: Sequence[str]) -> int:
    """Install the named programs, all of them without a name, and print what came of each."""
    unknown = sorted(set(names) - set(PROGRAMS))
    if unknown:
        print(f"no program is called {unknown[0]}; there are {', '.join(PROGRAMS)}")
        return 2
    # Node comes first: others are started by it.
    chosen = [program for program in PROGRAMS.values() if not names or program.name in names]
    if any(program.newer_node for program in chosen):
        install(PROGRAMS["node"], PROGRAMS["node"].versions[-1])
    pairs = [(program, version) for program in chosen for version in program.versions]
    with ThreadPoolExecutor(2) as pool:
        for (program, version), problem in zip(
            pairs, pool.map(lambda pair: install(*pair), pairs), strict=True
        ):
            print(f"  {program.name} {version}: {problem or 'there'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
