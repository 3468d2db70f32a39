"""Patches as Codex models write them: all of a patch up to what fails, and nothing after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext import settings as sources
from evercontext.app import EverContext
from evercontext.domain.outcome import Outcome
from tests.journeys.story import call, script


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("one\ntwo\n")
    (root / "b.py").write_text("three\n")
    return root


async def patched(project: Path, *lines: str) -> Outcome:
    """Let a model read both files and patch them."""
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    model = script(
        project.parent / "s.jsonl",
        {"tool_calls": [call("read_file", path=name) for name in ("a.py", "b.py")]},
        {"tool_calls": [call("apply_patch", input=patch)]},
        {"text": "Done."},
    )
    home = {"EC_HOME": str(project.parent / "home")}
    settings = sources.load({"root": str(project)}, environment=home, cwd=project)
    async with EverContext.open(settings) as app:
        report = await app.run_task("Patch it.", model_name=model)
    return report.outcome


async def test_a_file_is_changed_and_moved_and_another_one_replaced(project: Path) -> None:
    move = ("*** Update File: a.py", "*** Move to: c/d.py", "@@", " one", "-two", "+TWO")
    outcome = await patched(project, *move, "*** Add File: b.py", "+four")
    assert outcome is Outcome.DONE
    assert (project / "c/d.py").read_text() == "one\nTWO\n"
    assert (project / "b.py").read_text() == "four\n"
    assert not (project / "a.py").exists()


async def test_nothing_is_done_after_the_part_that_fails(project: Path) -> None:
    """A change that does not fit was refused, and the file moved nevertheless."""
    lines = ("*** Update File: b.py", "@@", "-three", "+THREE")
    move = ("*** Update File: a.py", "*** Move to: c/d.py", "@@", "-not there", "+x")
    outcome = await patched(project, *lines, *move, "*** Delete File: b.py")
    assert outcome is not Outcome.DONE
    assert (project / "a.py").read_text() == "one\ntwo\n"
    assert (project / "b.py").read_text() == "THREE\n"
    assert not (project / "c").exists()
