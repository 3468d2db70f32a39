from __future__ import annotations

import pytest

from evercontext.agent.patch_envelope import InvalidPatch, read_patch


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def test_a_patch_of_several_files() -> None:
    """A new file, a change of two hunks with a move, and a deletion."""
    text = patch(
        "*** Add File: new.py",
        "+one",
        "+",
        "*** Update File: a.py",
        "*** Move to: b.py",
        "@@ def f():",
        " def f():",
        "-    return 1",
        "+    return 2",
        "@@",
        "-gone",
        "*** End of File",
        "*** Delete File: old.py",
    )
    new, changed, deleted = read_patch(f"Here it is:\n```\n{text}\n```")
    assert (new.action, new.path, new.content) == ("Add", "new.py", "one\n\n")
    assert changed.move_to == "b.py"
    assert changed.edits() == [
        {"old": "def f():\n    return 1", "new": "def f():\n    return 2"},
        {"old": "gone\n", "new": ""},
    ]
    assert (deleted.action, deleted.path) == ("Delete", "old.py")


@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Update File: a.py\n-x\n+y",
        patch("nothing"),
        patch(),
    ],
)
def test_what_is_no_patch(text: str) -> None:
    with pytest.raises(InvalidPatch):
        read_patch(text)


def test_a_hunk_without_a_line_of_the_file_is_no_edit() -> None:
    """Where it belongs would be a guess."""
    (file,) = read_patch(patch("*** Update File: a.py", "@@ class A:", "+    x = 1"))
    with pytest.raises(InvalidPatch, match="no line of the file"):
        file.edits()


def test_a_new_file_is_written_in_pluses() -> None:
    (file,) = read_patch(patch("*** Add File: a.py", "+x", "y"))
    with pytest.raises(InvalidPatch):
        file.content  # noqa: B018 - reading it is the test
