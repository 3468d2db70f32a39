from __future__ import annotations

from pathlib import Path

from evercontext.files.contained_paths import Root
from evercontext.files.policy import agent_policy
from evercontext.index.partial_search import MOST_BYTES, unindexed_hits
from evercontext.index.source_reader import Reader
from evercontext.index.walker import WalkedFile, Walker
from tests.index.world import write

KEY = "sk-" + "c4n4ry7x" * 4


async def _found(tree: Path) -> tuple[Reader, list[WalkedFile]]:
    root = Root.open(tree)
    return Reader(root, agent_policy()), await Walker(tree, agent_policy()).walk()


async def test_lines_around_the_best_one_are_shown_without_secrets(tmp_path: Path) -> None:
    lines = [f"x{n} = {n}" for n in range(40)]
    lines[20] = f"def refund(payment): return '{KEY}'"
    tree = write(tmp_path, {"pay.py": "\n".join(lines), "other.py": "y = 1\n"})
    reader, files = await _found(tree)
    (hit,) = unindexed_hits(reader, files, "refund a payment", 5)
    assert (hit.path, hit.start_line, hit.end_line) == ("pay.py", 15, 27)
    assert "def refund" in hit.text
    assert KEY not in hit.text


async def test_what_is_too_much_to_read_is_found_by_its_name_alone(tmp_path: Path) -> None:
    tree = write(tmp_path, {"refund.py": "x = 1\n"})
    reader, _ = await _found(tree)
    (hit,) = unindexed_hits(reader, [WalkedFile("refund.py", MOST_BYTES + 1, 0, 0)], "refund", 5)
    assert (hit.path, hit.reasons, hit.text) == ("refund.py", ("file name",), "")


async def test_files_that_may_not_be_read_and_words_that_say_nothing(tmp_path: Path) -> None:
    tree = write(tmp_path, {"a.py": "refund\n"})
    (tree / "b.py").write_bytes(b"refund \xff")
    reader, files = await _found(tree)
    assert [hit.path for hit in unindexed_hits(reader, files, "refund", 5)] == ["a.py"]
    assert unindexed_hits(reader, files, "?", 5) == []
