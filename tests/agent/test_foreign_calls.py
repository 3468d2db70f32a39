"""Calls in the words of other agents' tools (A7, complaint 1 of local models)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evercontext.agent.foreign_calls import in_our_words, search_replace
from evercontext.domain.message import ToolCall
from evercontext.events.log import EventLog
from evercontext.files.policy import agent_policy
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.file_tools import workspace_tools
from evercontext.workspace.workspace import LocalWorkspace

BLOCK = "<<<<<<< SEARCH\na - b\n=======\na + b\n>>>>>>> REPLACE\n"
EDITS = [{"old": "a - b", "new": "a + b"}]
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a - b\n+a + b\n*** End Patch"


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    root = tmp_path / "project"
    root.mkdir()
    policy = agent_policy()
    workspace = LocalWorkspace.open(
        root, tmp_path / "home", gateway=policy, agent=policy, environment={}
    )
    return Toolbox(workspace_tools(workspace), EventLog(tmp_path / "traces"))


def ours(box: Toolbox, name: str, arguments: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    calls = in_our_words([ToolCall("1", name, arguments)], box)
    assert len({call.id for call in calls}) == len(calls)
    return [(call.name, dict(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "a - b", "new_string": "a + b"}),
        (
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "a - b", "new_string": "a + b"}]},
        ),
        ("replace", {"file_path": "a.py", "old_string": "a - b", "new_string": "a + b"}),
        ("replace_in_file", {"path": "a.py", "diff": BLOCK}),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "a.py", "old_str": "a - b", "new_str": "a + b"},
        ),
        ("edit", {"filePath": "a.py", "oldString": "a - b", "newString": "a + b"}),
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"patchText": PATCH}),
        ("apply_patch", {"input": PATCH.replace("*** Update", "  *** Update")}),
        ("shell", {"command": ["apply_patch", PATCH]}),
    ],
)
def test_an_edit_is_an_edit(box: Toolbox, name: str, arguments: dict[str, Any]) -> None:
    assert ours(box, name, arguments) == [("edit_file", {"path": "a.py", "edits": EDITS})]


def test_reading_and_writing(box: Toolbox) -> None:
    assert ours(box, "Read", {"file_path": "a.py"}) == [("read_file", {"path": "a.py"})]
    whole = {"path": "a.py", "content": "x", "mode": "overwrite"}
    assert ours(box, "Write", {"file_path": "a.py", "content": "x"}) == [("write_file", whole)]
    assert ours(box, "write_file", {"path": "a.py", "content": "x"}) == [("write_file", whole)]


def test_a_patch_of_several_files_is_several_calls(box: Toolbox) -> None:
    text = PATCH.replace("*** End", "*** Delete File: b.py\n*** Add File: c.py\n+c\n*** End")
    assert [name for name, _ in ours(box, "apply_patch", {"patch": text})] == [
        "edit_file",
        "delete_file",
        "write_file",
    ]


def test_a_header_may_be_indented_and_a_line_of_a_file_may_look_like_one(box: Toolbox) -> None:
    text = PATCH.replace("*** Update", "  *** Update").replace("@@", "@@\n *** Delete File: b.py")
    ((name, arguments),) = ours(box, "apply_patch", {"input": text})
    assert (name, arguments["path"]) == ("edit_file", "a.py")
    assert arguments["edits"][0]["old"] == "*** Delete File: b.py\na - b"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("readFile", {"path": "a.py"}),
        ("launch_rocket", {"file_path": "a.py"}),
        ("Read", {"file_path": "a.py", "filename": "b.py"}),
        ("Edit", {"file_path": "a.py", "old_string": "x"}),
    ],
)
def test_what_is_ours_or_unclear_is_not_guessed(
    box: Toolbox, name: str, arguments: dict[str, Any]
) -> None:
    (call,) = in_our_words([ToolCall("1", name, arguments)], box)
    missing = "edits" if name == "Edit" else "path"
    assert call.arguments == arguments or missing not in call.arguments


def test_a_broken_patch_is_told_to_the_model(box: Toolbox) -> None:
    text = "*** Begin Patch\n*** Update File: a.py\n@@\n+x\n*** End Patch"
    (call,) = in_our_words([ToolCall("1", "apply_patch", {"input": text})], box)
    assert call.malformed
    assert "no line of the file" in call.malformed


def test_only_a_call_that_reads_is_completed(box: Toolbox) -> None:
    """Half of a file must never be written."""
    cut = [
        ToolCall("1", "read_file", {}, malformed='{"path": "a.py"'),
        ToolCall("2", "write_file", {}, malformed='{"path": "a.py", "content": "half of'),
    ]
    read, written = in_our_words(cut, box)
    assert (read.arguments, read.malformed) == ({"path": "a.py"}, None)
    assert written is cut[1]


def test_search_replace_blocks() -> None:
    assert search_replace(BLOCK) == EDITS
    assert search_replace("<<<<<<< SEARCH\ngone\n=======\n>>>>>>> REPLACE") == [
        {"old": "gone\n", "new": ""}
    ]
    assert search_replace(BLOCK + "<<<<<<< SEARCH\nhalf\n=======\n") == []
