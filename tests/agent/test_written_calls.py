"""V6: a call that a model only wrote as text was not made, and nobody says "done" of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext import testing
from evercontext.agent.system_prompt import Surroundings
from evercontext.agent.task import TaskRun
from evercontext.agent.task_report import TaskReport
from evercontext.domain.model import ToolSpec
from evercontext.domain.outcome import Outcome
from evercontext.domain.printed_calls import PrintedCalls
from evercontext.domain.tool import Caller, Door, Mode
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n x = 1\n-y = 1\n+y = 2\n*** End Patch"
BLOCK = "a.py\n<<<<<<< SEARCH\nx = 1\ny = 1\n=======\nx = 1\ny = 2\n>>>>>>> REPLACE"
MARKUP = '<invoke name="write_file"><parameter name="path">b.py</parameter></invoke>'
MADE: dict[str, object] = {
    "tool_calls": [
        {
            "name": "edit_file",
            "arguments": {
                "path": "a.py",
                "edits": [{"old": "x = 1\ny = 1", "new": "x = 1\ny = 2"}],
            },
        }
    ]
}
LIE: dict[str, object] = {"text": "Done!"}
written = pytest.mark.parametrize("text", [f"Here:\n\n{PATCH}", BLOCK, MARKUP])


async def run(
    tmp_path: Path, *turns: dict[str, object], door: Door = Door.RUN, mode: Mode = Mode.AGENT
) -> TaskReport:
    root, policy, log = tmp_path / "project", agent_policy(), EventLog(tmp_path / "traces")
    root.mkdir()
    (root / "a.py").write_text("x = 1\ny = 1\n")
    workspace = LocalWorkspace.open(
        root, tmp_path / "home", gateway=policy, agent=policy, environment={}
    )
    task = TaskRun(
        model=testing.scripted_model(tmp_path / "s.jsonl", list(turns)),
        toolbox=Toolbox(workspace_tools(workspace), log),
        events=log,
        caller=Caller("t", door, mode),
        surroundings=Surroundings("p", ("a.py",)),
        root=str(root),
    )
    try:
        return await task.run("change y")
    finally:
        log.close()


@written
async def test_a_lie_after_it_is_no_done(tmp_path: Path, text: str) -> None:
    report = await run(tmp_path, {"text": text}, LIE)
    assert report.outcome is Outcome.FAILED
    assert "was written as text and not carried out" in (report.final.error or "")


async def test_the_model_is_asked_once_to_make_the_call(tmp_path: Path) -> None:
    asked = {"when": "as text: it was not carried out", **MADE}
    report = await run(tmp_path, {"text": PATCH}, asked, {"text": "y is 2 now."})
    assert (report.outcome, report.final.error) == (Outcome.DONE, None)
    assert "as text" not in (report.final.note or "")
    assert (tmp_path / "project" / "a.py").read_text() == "x = 1\ny = 2\n"


@written
async def test_a_person_reads_the_answer_and_that_nothing_was_done(
    tmp_path: Path, text: str
) -> None:
    report = await run(tmp_path, {"text": text}, door=Door.CHAT)
    assert report.outcome is Outcome.DONE
    assert "was written as text and not carried out" in (report.final.note or "")


@written
async def test_where_nothing_may_be_changed_a_patch_is_an_answer(tmp_path: Path, text: str) -> None:
    report = await run(tmp_path, {"text": text}, mode=Mode.PLAN)
    assert (report.outcome, report.final.note) == (Outcome.DONE, None)


OPENED = (
    *("<<<<<<< SEARCH\n", "------- SEARCH\n=======\n", "*** Begin Patch\n", "<tool_call>"),
    *('<invoke name="a"><parameter name="x">', '<invoke name="a"><parameter name="x" '),
    *("<｜tool▁call▁begin｜>a", "<|tool_call_begin|>a<|tool_call_argument_begin|>", "<function="),
    *("<tool_call>a<arg_key>", "<tool_call>a<arg_key>k</arg_key>", "```tool_code\n\n", "{},"),
    *("<function=a><parameter=b>", "<function=a><parameter=b", "```\n\n\n", '{\\"\\"', "[{", " "),
)


@pytest.mark.parametrize("text", OPENED)
async def test_what_a_model_repeats_without_end_holds_nobody_up(text: str) -> None:
    """X8: 40 KB of one mark held the whole process for a second, 2 MB for an hour."""
    count = 100_000 // len(text)
    for whole in (text * count, f"```\n{text * count}", f"{{{text * count}}}"):
        printed = PrintedCalls([ToolSpec("edit_file", "", {"type": "object"})])
        for start in range(0, len(whole), 5_000):
            printed.feed(whole[start : start + 5_000])
        printed.finish()
