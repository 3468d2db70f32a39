from __future__ import annotations

from pathlib import Path

from evercontext.index.structure.repository_map import draw_map
from evercontext.index.structure.source_tree import SourceTree
from tests.index.structure.world import PYTHON
from tests.index.world import opened, write


def _count(text: str) -> int:
    return len(text.split())


async def test_a_map_fits_its_budget_and_shows_what_is_used_most(tmp_path: Path) -> None:
    write(tmp_path, PYTHON)
    async with opened(tmp_path) as index:
        await index.update()
        async with index.corpus() as corpus:
            tree = SourceTree(corpus, index.indexer.reader)
            small = draw_map(tree, corpus, _count, budget=10)
            large = draw_map(tree, corpus, _count, budget=1_000)
    assert small.tokens <= 10
    assert small.text.startswith("shop/cart.py")
    assert "class Cart(Base)" in small.text
    assert small.symbols < large.symbols
    assert "    17: def add(self, item)" in large.text
    assert large.total_files == 4


async def test_a_map_of_one_folder(tmp_path: Path) -> None:
    write(tmp_path, PYTHON)
    async with opened(tmp_path) as index:
        await index.update()
        async with index.corpus() as corpus:
            tree = SourceTree(corpus, index.indexer.reader)
            drawn = draw_map(tree, corpus, _count, prefix="tests/")
    assert drawn.text.startswith("tests/test_cart.py")
    assert drawn.files == 1
