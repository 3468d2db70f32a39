from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.domain.tool import FileChange
from evercontext.tools.diff import describe, describe_if_small

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "+x", "--- y", "@@ -1 +1 @@"]), max_size=40)


def patched(old: list[str], diff: str) -> list[str]:
    """Apply a unified diff the strict way: every context and removed line must be there."""
    result: list[str] = []
    at = 0
    for line in diff.splitlines()[2:]:
        if hunk := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", line):
            start = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            result += old[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert old[at] == line[1:]
            if line[0] == " ":
                result.append(line[1:])
            at += 1
    return result + old[at:]


@given(LINES, LINES, LINES, LINES)
def test_diff_leads_from_old_to_new(
    head: list[str], before: list[str], after: list[str], tail: list[str]
) -> None:
    old, new = head + before + tail, head + after + tail
    change = FileChange("f.txt", "".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new))
    event = describe(change)
    assert patched(old, event.diff) == new if event.diff else old == new
    assert event.added - event.removed == len(new) - len(old)


def test_small_change_in_a_long_file_shows_its_place() -> None:
    old = [f"line {n}" for n in range(1, 501)]
    new = [*old[:249], "changed", *old[250:]]
    event = describe(FileChange("f.txt", "\n".join(old), "\n".join(new)))
    assert "@@ -247,7 +247,7 @@" in event.diff
    assert (event.added, event.removed) == (1, 1)


def test_same_content_is_no_change() -> None:
    assert describe(FileChange("f.txt", "a\nb\n", "a\nb\n")).diff == ""


@pytest.mark.timeout(20)
def test_hostile_content_cannot_stall_the_comparison() -> None:
    source = random.Random(1)
    old, new = ("".join(f"{source.randrange(100)}\n" for _ in range(150_000)) for _ in range(2))
    event = describe(FileChange("f.txt", old, new))
    assert event.added > 0
    assert event.removed > 0


@pytest.mark.contract("E34")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\r\nb\r\n", "a\r\nB\r\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("x\n\fy\nz\n", "x\n\fy\nZ\n"),
        ("a\u2028b\n", "a\nb\n"),
        ("no end", "still no end"),
        ("no end", "no end\n"),
        ("an end\n", "an end"),
        (None, "new"),
        ("gone", None),
    ],
)
def test_git_applies_the_diff_whatever_ends_a_line(
    before: str | None, after: str | None, tmp_path: Path
) -> None:
    place = tmp_path / "f.txt"
    if before is not None:
        place.write_bytes(before.encode())
    event = describe(FileChange("f.txt", before, after))
    git = ["git", "-C", str(tmp_path), "apply", "--whitespace=nowarn"]
    subprocess.run(git, input=event.diff.encode(), check=True, timeout=20)
    assert (place.read_bytes().decode() if place.exists() else None) == after


def test_small_changes_are_described_at_once_and_others_left_to_a_thread() -> None:
    lines = [f"line {n}\n" for n in range(500)]
    small = FileChange("a.txt", "".join(lines), "".join([*lines[:250], "new\n", *lines[250:]]))
    assert describe_if_small(small) == describe(small)
    long = FileChange("a.txt", "x" * 10_000, "y" * 10_000)
    assert describe_if_small(long) is None
    hard = FileChange("a.txt", "a\n" * 200 + "b\n" * 200, "b\n" * 200 + "a\n" * 200)
    assert describe_if_small(hard) is None
