from __future__ import annotations

import pytest

from evercontext.agent.judgement import judge, left_undone, own_refusal, shortcomings, unsaid
from evercontext.agent.run_progress import Progress
from evercontext.domain.message import ToolCall
from evercontext.domain.outcome import Outcome
from evercontext.domain.tool import FileChange, ToolResult
from evercontext.errors import HookBlocked, ModeRefused, NotFound

EDIT, WRITE, COMMAND = (ToolCall("1", n, {}) for n in ("edit_file", "write_file", "run_command"))
LOST = ToolResult.failed(NotFound("no such file"))
NEW = (FileChange("b.py", None, "x\n"),)
SAME = (FileChange("b.py", "x\n", "x\n"),)


def ran(code: int, *changes: FileChange) -> ToolResult:
    return ToolResult("", {"exit_code": code}, changes=changes)


MADE_GOOD = {
    "nothing followed": ([], Outcome.FAILED),
    "a command that changed nothing": ([(COMMAND, ran(0))], Outcome.FAILED),
    "a failed command that left a file": ([(COMMAND, ran(1, *NEW))], Outcome.FAILED),
    "a command that changed a file": ([(COMMAND, ran(0, *NEW))], Outcome.DONE),
    "the same tool again": ([(EDIT, ToolResult("", changes=SAME))], Outcome.DONE),
    "another tool that writes": ([(WRITE, ToolResult("", changes=NEW))], Outcome.DONE),
}


@pytest.mark.contract("E35")
@pytest.mark.parametrize("name", MADE_GOOD)
def test_what_makes_a_failed_edit_good(name: str) -> None:
    """V6"""
    after, outcome = MADE_GOOD[name]
    progress = Progress()
    progress.note(EDIT, LOST, edits=True)
    for call, result in after:
        progress.note(call, result, edits=call is not COMMAND)
    assert judge(progress, None) is outcome


@pytest.mark.contract("E35")
def test_a_failed_command_is_excused_by_what_others_changed_alone() -> None:
    """V6"""
    progress = Progress()
    progress.note(COMMAND, ran(1, *NEW))
    assert judge(progress, None) is Outcome.FAILED
    assert judge(progress, None, attended=True) is Outcome.DONE, "a person reads the answer"
    progress.note(WRITE, ToolResult("", changes=NEW), edits=True)
    progress.note(COMMAND, ran(1))
    assert judge(progress, None) is Outcome.DONE


@pytest.mark.contract("E35")
def test_a_file_that_could_not_be_written_is_not_forgotten() -> None:
    """V6: another file and a failed command made it "done", and nobody mentioned it."""
    progress = Progress()
    progress.note(ToolCall("1", "write_file", {"path": "src/a.py"}), LOST, edits=True)
    progress.note(WRITE, ToolResult("", changes=NEW), edits=True)
    assert judge(progress, None) is Outcome.DONE
    assert shortcomings(progress) == "write_file failed for src/a.py"
    progress.note(COMMAND, ran(3))
    assert judge(progress, None) is Outcome.FAILED
    assert left_undone(progress) == (
        "write_file failed for src/a.py, and the last command failed (exit code 3)"
    )
    progress.note(WRITE, ToolResult("", changes=(FileChange("a.py", None, "x\n"),)), edits=True)
    progress.note(COMMAND, ran(3))
    assert judge(progress, None) is Outcome.DONE, "it was written after all"
    assert shortcomings(progress) == "the last command failed (exit code 3)"


def test_a_command_that_fails_makes_nothing_good() -> None:
    progress = Progress()
    progress.note(WRITE, ToolResult("", changes=NEW), edits=True)
    progress.note(COMMAND, LOST)
    progress.note(COMMAND, ran(3))
    assert judge(progress, None) is Outcome.FAILED


@pytest.mark.contract("E35")
def test_what_a_hook_blocked_and_nothing_made_good_is_denied() -> None:
    """The error table says that a hook's no is a denial; a blocked call was a failure."""
    progress = Progress()
    blocked = ToolResult.failed(HookBlocked("a hook blocked write_file: not there"))
    progress.note(WRITE, blocked, edits=True)
    assert judge(progress, None) is Outcome.DENIED
    assert not own_refusal(Outcome.DENIED, progress)
    assert unsaid(Outcome.DENIED, progress) == (
        "a hook blocked write_file: not there; the task stayed undone"
    )
    progress.note(WRITE, ToolResult("", changes=NEW), edits=True)
    assert judge(progress, None) is Outcome.DONE, "the model found another way"


def test_the_reason_of_a_failed_call_is_told() -> None:
    progress = Progress()
    progress.note(EDIT, LOST, edits=True)
    assert left_undone(progress) == "edit_file failed and the task stayed undone: no such file"


def test_any_call_that_works_makes_a_command_good_that_could_not_start() -> None:
    progress = Progress()
    progress.note(COMMAND, LOST)
    assert judge(progress, None) is Outcome.FAILED
    progress.note(COMMAND, ran(0))
    assert judge(progress, None) is Outcome.DONE


def test_what_the_mode_forbids_is_no_failure() -> None:
    progress = Progress()
    progress.note(WRITE, ToolResult.failed(ModeRefused("plan mode")), edits=True)
    assert judge(progress, None) is Outcome.DONE


def test_what_several_parts_did_is_added_up() -> None:
    whole, part = Progress(), Progress()
    part.note(WRITE, ToolResult("", changes=NEW), edits=True)
    whole.add(part)
    other = Progress()
    other.note(EDIT, LOST, edits=True)
    whole.add(other)
    assert (whole.achieved, whole.failed_call, whole.failed_edit) == (True, "edit_file", True)
    assert list(whole.changed) == ["b.py"]


@pytest.mark.parametrize("name", ["", "read\n\x1b[2Jfile", "語" * 5_000])
def test_a_tool_that_is_not_there_fails_under_a_short_plain_name(name: str) -> None:
    progress, call = Progress(), ToolCall("1", name, {})
    progress.note(call, LOST)
    assert judge(progress, None) is Outcome.FAILED
    line = left_undone(progress) or ""
    assert line.isprintable()
    assert len(line) < 200
    progress.note(call, ran(0))
    assert judge(progress, None) is Outcome.DONE


def test_what_was_made_and_removed_again_is_no_change() -> None:
    first, second = Progress(), Progress()
    first.count([FileChange("new", None, "x"), FileChange("old", "a", None)])
    second.count([FileChange("new", "x", None), FileChange("old", None, "b")])
    first.add_changes(second)
    assert first.changed == {"new": False, "old": True}


def test_what_cannot_be_undone_is_named() -> None:
    progress = Progress()
    progress.count([FileChange("big.bin", None, "x", undoable=False)])
    assert progress.changed == {"big.bin": True}
    assert progress.undo_note == "cannot be undone: big.bin"


def test_a_sub_agent_that_only_looked_makes_nothing_good() -> None:
    progress = Progress(failed_call="write_file", failure="no")
    progress.take_in(Progress())
    assert progress.failed_call == "write_file"
    progress.take_in(Progress(achieved=True))
    assert progress.failed_call == ""
