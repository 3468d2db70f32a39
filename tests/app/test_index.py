from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evercontext.app.index import index_of, open_index
from evercontext.errors import ConfigError
from evercontext.events.log import EventLog
from evercontext.index.code_search import CodeIndex
from evercontext.settings import Settings

MOST_MODULES = 120
COUNT = """
import sys
from evercontext.cli import main
def count(code):
    print(sum(name.partition(".")[0] == "evercontext" for name in sys.modules))
main.leave = count
main.main(sys.argv[1:])
"""


def _project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    return root


def _search(root: Path, home: Path, question: str) -> list[str]:
    environment = {"EC_HOME": str(home), "HOME": str(home.parent), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", COUNT, "search", question]
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_a_search_loads_the_index_and_little_else(tmp_path: Path) -> None:
    root, home = _project(tmp_path), tmp_path / "home"
    _search(root, home, "add")
    *lines, modules = _search(root, home, "add")
    assert lines[0].startswith("calc.py:1-2")
    assert int(modules) <= MOST_MODULES


@pytest.mark.contract("E38")
async def test_the_index_opens_under_the_policy_of_a_run(tmp_path: Path) -> None:
    root = _project(tmp_path)
    (root / "secret.pem").write_text("add\n")
    (root / "notes.bin").write_text("add\n")
    settings = Settings(root=root, home=tmp_path / "home")
    async with open_index(settings, lambda text: None) as index:
        assert isinstance(index, CodeIndex)
        await index.update()
        assert set(await index.table.rows()) == {"calc.py"}


async def test_a_root_that_is_missing_is_refused(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path / "missing", home=tmp_path / "home")
    with pytest.raises(ConfigError, match="not a directory"):
        async with open_index(settings, lambda text: None):
            pass


@pytest.mark.contract("E38")
@pytest.mark.parametrize(("value", "vectors"), [("static", True), ("none", False)])
async def test_the_packaged_vectors_and_none_need_no_embedder(
    tmp_path: Path, value: str, vectors: bool
) -> None:
    settings = Settings(root=_project(tmp_path), home=tmp_path / "home", embedder=value)
    events = EventLog(settings.traces)
    index = index_of(settings, events)
    assert index.embedder() is None
    assert index.use_vectors is vectors
    events.close()
