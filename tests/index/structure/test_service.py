from __future__ import annotations

from pathlib import Path

import pytest

from evercontext.errors import NotFound, PathEscape
from evercontext.index.structure.service import ask_structure, map_repository, outline_file
from tests.index.structure.world import PYTHON, places
from tests.index.world import opened, write


async def test_an_answer_follows_every_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evercontext.index.code_search.LOOK_EVERY", 0.0)
    write(tmp_path, PYTHON)
    async with opened(tmp_path) as index:
        first = await ask_structure(index, "callers", "price")
        assert "shop/checkout.py:16 imported" in places(first)
        write(tmp_path, {"shop/checkout.py": "from shop.cart import price\n\n\nprice(1)\n"})
        write(tmp_path, {"shop/more.py": "import shop.cart\n\nshop.cart.price(2)\n"})
        (tmp_path / "tests/test_cart.py").unlink()
        second = await ask_structure(index, "callers", "price")
    assert places(second) == [
        "shop/cart.py:22 same file",
        "shop/checkout.py:4 imported",
        "shop/more.py:3 imported",
    ]


async def test_the_limit_leaves_out_and_counts(tmp_path: Path) -> None:
    write(tmp_path, PYTHON)
    async with opened(tmp_path) as index:
        answer = await ask_structure(index, "references", "price", limit=1)
    assert (len(answer.places), answer.total) == (1, 4)


async def test_an_outline_of_what_has_none_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {**PYTHON, "README.md": "# Shop\n"})
    async with opened(tmp_path) as index:
        assert (await outline_file(index, "./shop/cart.py"))[0].name == "RATE"
        for path in ("README.md", "missing.py"):
            with pytest.raises(NotFound):
                await outline_file(index, path)
        with pytest.raises(PathEscape):
            await outline_file(index, "../x.py")


async def test_a_cold_index_is_filled_before_the_answer(tmp_path: Path) -> None:
    files = {f"m{number}.py": f"def f{number}(): ...\n" for number in range(60)}
    write(tmp_path, {**files, "a.py": "from m7 import f7\nf7()\n"})
    async with opened(tmp_path) as index:
        answer = await ask_structure(index, "callers", "f7")
        drawn = await map_repository(index, len, 5_000)
    assert places(answer) == ["a.py:2 imported"]
    assert drawn.total_files == 61
