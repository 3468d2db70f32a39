from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evercontext import testing
from evercontext.agent.repair.attempt_journal import AttemptJournal, ChangedFile
from evercontext.agent.repair.protection import is_protected
from evercontext.app import EverContext
from evercontext.domain.tool import Caller, Door
from evercontext.workspace.workspace import LocalWorkspace

CALLER = Caller("t", Door.RUN)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[EverContext]:
    (tmp_path / "project" / "tests").mkdir(parents=True)
    (tmp_path / "project" / "a.py").write_text("古い\n", encoding="utf-8")
    (tmp_path / "project" / "tests" / "test_a.py").write_text("x = 1\n")
    async with testing.house(tmp_path) as opened:
        yield opened


async def write(app: EverContext, path: str, content: str) -> None:
    arguments = {"path": path, "content": content, "mode": "overwrite"}
    result = await app.toolbox.call("write_file", arguments, CALLER)
    assert result.ok, result.text


def ledger(app: EverContext) -> AttemptJournal:
    assert isinstance(app.workspace, LocalWorkspace)
    return AttemptJournal(app.workspace, "t")


async def test_only_what_changed_since_and_what_it_was(app: EverContext) -> None:
    book = ledger(app)
    await write(app, "made.py", "x = 1\n")
    mark = await book.mark()
    await write(app, "a.py", "新しい\n")
    await write(app, "b.py", "b\n")
    await write(app, "made.py", "x = 2\n")
    await write(app, "made.py", "x = 1\n")
    assert set(await book.touched(mark)) == {
        ChangedFile("a.py", "古い\n", "新しい\n"),
        ChangedFile("b.py", None, "b\n"),
    }
    assert await book.created() == {"made.py", "b.py"}
    await book.take_back(mark)
    assert await book.touched(mark) == ()
    root = app.settings.root
    assert (root / "a.py").read_text(encoding="utf-8") == "古い\n"
    assert not (root / "b.py").exists()
    assert (root / "made.py").read_text() == "x = 1\n"


@pytest.mark.case(74)
async def test_what_no_repair_may_change_is_named(app: EverContext) -> None:
    book = ledger(app)
    mark = await book.mark()
    await write(app, "tests/report.txt", "left by a test run\n")
    await write(app, "a.py", "y = 2\n")
    assert await book.trespasses(mark, is_protected) == ()
    await write(app, "tests/test_a.py", "x = 2\n")
    await write(app, "tests/conftest.py", "collect_ignore = ['test_a.py']\n")
    await write(app, "a.py", "y = 2  # noqa\n")
    assert sorted(await book.trespasses(mark, is_protected)) == [
        "a.py (it silences a check)",
        "tests/conftest.py",
        "tests/test_a.py",
    ]
