from __future__ import annotations

from pathlib import Path

from tests.index.structure.world import PYTHON, parsed


async def test_only_files_that_hold_a_name_are_read(tmp_path: Path) -> None:
    async with parsed(tmp_path, {**PYTHON, "README.md": "price\n"}) as tree:
        assert [s.path for s in tree.sources_with("price")] == ["shop/cart.py", "shop/checkout.py"]
        assert tree.files_read == {"shop/cart.py", "shop/checkout.py"}
        assert tree.paths_defining("Fake") == ["tests/test_cart.py"]


async def test_a_name_of_one_letter_is_looked_for_everywhere(tmp_path: Path) -> None:
    async with parsed(tmp_path, {"a.py": "T = 1\n", "b.py": "from a import T\n"}) as tree:
        assert [source.path for source in tree.sources_with("T")] == ["a.py", "b.py"]


async def test_a_name_nobody_uses_costs_nothing(tmp_path: Path) -> None:
    async with parsed(tmp_path, PYTHON) as tree:
        assert list(tree.sources_with("warehouse")) == []
        assert not tree.files_read
        assert tree.source("README.md") is None
