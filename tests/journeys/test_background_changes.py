"""What a background command changed after its turn: named, shown and taken back in the chat."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from evercontext.process.sandbox import Layer, choose
from tests.cli.command import evercontext
from tests.journeys.person import Person
from tests.journeys.story import call, script, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(choose("auto") is Layer.NONE, reason="no sandbox here"),
]
LINE = "until [ -e go ]; do sleep 0.05; done; echo late > a.txt; touch late.txt; sleep 1000"


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [call("run_command", command=line, **more)]}


def until(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.05)


@pytest.mark.contract("N8")
def test_undo_and_diff_name_it_and_all_takes_it_back(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("old\n")
    model = script(
        tmp_path / "s.jsonl",
        command(LINE, background=True),
        {"text": "It runs."},
        write("own.txt", "own\n", "create"),
        {"text": "Written."},
    )
    with Person(project, "chat", "-m", model, "--yes", columns=110) as person:
        person.sees("agent mode")
        person.says("start it")
        person.sees("run_command (in the background)", "It runs.", "may be its work or yours")
        (project / "go").touch()
        until(project / "late.txt")
        person.says("/diff")
        person.sees("a.txt changed +1 -1 (while until", "+ late", "late.txt created +0 -0 (while")
        person.says("write own")
        person.sees("Written.", "done  1 file changed")
        person.says("/undo")
        person.sees(
            "removed  own.txt", "kept a.txt (changed while until", "; /undo all takes it back"
        )
        assert (project / "a.txt").read_text() == "late\n"
        person.says("/undo all")
        person.sees("restored  a.txt", "removed  late.txt")
        assert (project / "a.txt").read_text() == "old\n"
        assert not (project / "late.txt").exists()
        # What the undo itself wrote is nobody's change.
        person.says("/diff")
        person.sees("own.txt created")
        person.says("/undo")
        person.sees("no file to restore")
    listed = evercontext("undo", "--list", cwd=project).out
    assert listed.count("undone ") >= 1
    shown = evercontext("trace", "show", cwd=project).out
    assert "undone: all of it is taken back" in shown
