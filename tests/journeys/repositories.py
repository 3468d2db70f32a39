"""Real projects from the package registry, unpacked, with what their tests need."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

_CACHE = Path(__file__).parents[2] / ".pytest_cache" / "repositories"
_ENVIRONMENT = dict(os.environ)
"""As the tests were started: each test has proxies that lead nowhere."""
_PROJECTS = {
    "flask-3.0.3.tar.gz": "ceb27b0af3823ea2737928a4d99d125a06175b8512c445cbd9a9ce200ef76842",
    "httpx-0.27.2.tar.gz": "f7c2be1d2f3c3c3160d441802406b206c2b76f5947b11115e6df10c6c65e66c2",
}
_WHEELS = {  # plain Python, importable as they are
    "jinja2-3.1.4": "bc5dd2abb727a5319567b7a813e6a2e7318c39f4f487cfe6c89c6f9c7d25197d",
    "itsdangerous-2.2.0": "c6242fc49e35958c8b15141343aa660db5fc54d4f13a1db01a3f5891b98700ef",
    "blinker-1.8.2": "1779309f71bf239144b9399d06ae925637cf6634cf6bd131104184531bf67c01",
    "werkzeug-3.0.4": "02c9eb92b7d6c06f31a782811505d2157837cea66aaede3e217c7c27c039476c",
    "click-8.1.7": "ae74fb96c20a0277a1d615f1e4d73c8414f5a98db8b799a7931d1582f3390c28",
}
_FETCH = """
import html, os, re, sys, urllib.request
from urllib.parse import urljoin
file, to = sys.argv[1:]
index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
page = f"{index}/{file.split('-')[0]}/"
listed = urllib.request.urlopen(page, timeout=30).read().decode()
link = re.search(r'href="([^"#]*/?' + re.escape(file) + ')[#"]', listed)[1]
data = urllib.request.urlopen(urljoin(page, html.unescape(link)), timeout=60).read()
with open(to + ".part", "wb") as out:
    out.write(data)
os.replace(to + ".part", to)
"""


def _fetched(file: str, sha256: str) -> Path:
    """The file in the cache; the test is skipped where the registry cannot be reached."""
    path = _CACHE / file
    if not path.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", _FETCH, file, str(path)],
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["?"])[-1]
            pytest.skip(f"{file} cannot be fetched from the registry: {why}")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256, f"remove {path}"
    return path


def git(project: Path, *arguments: str) -> str:
    """Run git and return what it prints."""
    return subprocess.run(
        ["git", *arguments], cwd=project, check=True, capture_output=True, text=True
    ).stdout


def repository(name: str, to: Path) -> Path:
    """Unpack a project and commit it."""
    file = next(file for file in _PROJECTS if file.startswith(f"{name}-"))
    with tarfile.open(_fetched(file, _PROJECTS[file])) as archive:
        if hasattr(tarfile, "data_filter"):  # not in Python 3.11.2
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(to)
    project = to / file.removesuffix(".tar.gz")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "as released")
    return project


def with_its_tests(project: Path, file: str) -> str:
    """Put what flask's tests need beside it; return the command that runs one file of them."""
    pytest.importorskip("markupsafe", reason="flask's template engine needs it")
    needs = project / ".needs"
    needs.mkdir()
    paths = [_fetched(f"{wheel}-py3-none-any.whl", sha256) for wheel, sha256 in _WHEELS.items()]
    for path in paths:
        (needs / path.name).write_bytes(path.read_bytes())
    names = " ".join(path.name for path in paths)
    (needs / "pytest.ini").write_text(f"[pytest]\npythonpath = ../src {names}\n")
    (project / ".git" / "info" / "exclude").write_text(".needs/\n__pycache__/\n")
    return (
        f"{sys.executable} -B -m pytest -q --disable-plugin-autoload -p no:cacheprovider"
        f" -c .needs/pytest.ini --rootdir . --noconftest {file}"
    )
