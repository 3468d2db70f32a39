"""How large the tree of a command's processes is, and why one of them ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.process.process_tree import killed_for_memory


@pytest.mark.case(72)
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n"),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
    ],
)
def test_a_process_that_the_kernel_ended_for_its_memory_is_told(
    tmp_path: Path, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text)
    assert killed_for_memory([[str(tmp_path), []]])
    (tmp_path / file).write_text(text.replace("oom_kill 1", "oom_kill 0"))
    assert not killed_for_memory([[str(tmp_path), []]])


def test_without_control_groups_nobody_was_ended_by_the_kernel(tmp_path: Path) -> None:
    assert not killed_for_memory([])
    assert not killed_for_memory([[str(tmp_path / "removed"), []]])
