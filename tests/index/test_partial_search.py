from __future__ import annotations

import os
import time
from pathlib import Path

from evercontext.index.indexer import CHEAP
from evercontext.index.partial_search import ask
from tests.index.world import SHOP, opened, write

MANY = {f"many/part_{n}.py": f"def part_{n}(x):\n    return x + {n}\n" for n in range(CHEAP + 8)}


async def test_a_new_tree_is_indexed_while_the_first_question_waits(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {**SHOP, **MANY})
    told: list[tuple[int, int]] = []
    async with opened(tree, tmp_path / "index") as index:
        answer = await ask(index, "total price", patience=60, progress=lambda *p: told.append(p))
    assert answer.hits[0].path == "shop/cart.py"
    assert (answer.stale, answer.coverage) == (False, "")
    total = len(SHOP) + len(MANY)
    assert told == [(0, total), (total, total)]


async def test_who_will_not_wait_is_answered_from_names_and_plain_text(tmp_path: Path) -> None:
    """F1: and is told how complete the index is."""
    tree = write(
        tmp_path / "tree", {**SHOP, **MANY, "docs/送料.md": "# 送料\n\n送料は無料です。\n"}
    )
    async with opened(tree, tmp_path / "index") as index:
        async with index.indexer.lease.hold():
            # Another process has the right to index, for as long as this block lasts.
            index.indexer.lease = type(index.indexer.lease)(tmp_path / "index")
            answer = await ask(index, "total price", patience=0)
            japanese = await ask(index, "送料", patience=0)
            narrowed = await ask(index, "price", path_prefix="web/", patience=0)
        assert answer.hits[0].path == "shop/cart.py"
        assert "plain text" in answer.hits[0].reasons
        assert "total_price" in answer.hits[0].text
        assert answer.coverage == f"0 of {len(SHOP) + len(MANY) + 1} files"
        assert japanese.hits[0].path == "docs/送料.md"
        assert japanese.hits[0].reasons == ("file name", "plain text")
        assert not narrowed.hits


async def test_an_index_that_is_far_behind_answers_with_both_kinds(tmp_path: Path) -> None:
    """F1: a file indexed right after it was written is read once more, and counts as indexed."""
    tree = write(tmp_path / "tree", SHOP)
    for name in SHOP:
        # However slow the machine, these files are never older than the look at them.
        os.utime(tree / name, (time.time() + 3600,) * 2)
    async with opened(tree, tmp_path / "index") as index:
        await index.update()
    new = {f"new/price_{n}.py": f"price = {n}\n" for n in range(CHEAP + 1)}
    write(tree, new)
    async with opened(tree, tmp_path / "index") as index, index.indexer.lease.hold():
        index.indexer.lease = type(index.indexer.lease)(tmp_path / "index")
        answer = await ask(index, "total price", 4, patience=0)
    paths = [hit.path for hit in answer.hits]
    assert len(paths) == 4
    assert "shop/cart.py" in paths
    assert any(path.startswith("new/") for path in paths)
    assert answer.coverage == f"{len(SHOP)} of {len(SHOP) + len(new)} files"
