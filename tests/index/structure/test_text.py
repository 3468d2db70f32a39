from __future__ import annotations

from pathlib import Path

from evercontext.index.structure.outline import outline
from evercontext.index.structure.source import ParsedSource
from evercontext.index.structure.text import answer_text, outline_text
from tests.index.structure.world import PYTHON, ask


async def test_each_line_says_where_and_how_sure(tmp_path: Path) -> None:
    text = answer_text(await ask(tmp_path, PYTHON, "callers", "Cart.add"))
    assert text.split("\n") == [
        "callers of Cart.add (shop/cart.py:17): 3",
        "shop/checkout.py:10 [type] in Paid.pay | self.cart.add(1)",
        "shop/checkout.py:14 [type] in pay | cart.add(cost(1))",
        "shop/checkout.py:15 [name] in pay | other.add(2)",
    ]


async def test_nothing_is_said_to_be_nothing(tmp_path: Path) -> None:
    text = answer_text(await ask(tmp_path, PYTHON, "definition", "warehouse"))
    assert text == "warehouse: no definitions"
    assert outline_text([]) == "Nothing is defined here."


def test_members_are_indented_below_their_class() -> None:
    lines = outline_text(outline(ParsedSource("cart.py", PYTHON["shop/cart.py"]))).split("\n")
    assert lines[1:3] == ["6-8:  class Base", "7-8:    def total(self)"]
