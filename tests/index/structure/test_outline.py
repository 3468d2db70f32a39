from __future__ import annotations

import pytest

from evercontext.index.structure.outline import outline
from evercontext.index.structure.source import ParsedSource
from tests.index.structure.world import GO, JAVA, PYTHON, RUST, SCRIPT


@pytest.mark.parametrize(
    ("files", "path", "names"),
    [
        (
            PYTHON,
            "shop/cart.py",
            "RATE Base Base.total Cart Cart.size Cart.__init__ Cart.add Cart.total price",
        ),
        (
            SCRIPT,
            "src/cart.ts",
            "Priced Priced.total Cart Cart.items Cart.add Cart.total price Item",
        ),
        (GO, "cart/cart.go", "Priced Priced.Total Cart Cart.items Cart.Add New"),
        (RUST, "src/cart.rs", "Priced Priced.total Cart Cart.items Cart.new Cart.add Cart.total"),
        (JAVA, "src/shop/Cart.java", "Cart Cart.size Cart.add Cart.total"),
    ],
)
def test_the_definitions_of_a_file_in_order(files: dict[str, str], path: str, names: str) -> None:
    symbols = outline(ParsedSource(path, files[path]))
    assert [symbol.qualified_name for symbol in symbols] == names.split()
