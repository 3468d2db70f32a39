from __future__ import annotations

import pytest

from evercontext.index.structure.receiver_types import type_names, type_of
from evercontext.index.structure.source import ParsedSource


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Cart", ("Cart",)),
        ("Cart | None", ("Cart",)),
        ("Optional[shop.Cart]", ("shop.Cart",)),
        ("list[Cart]", ("list",)),
        ("'Cart'", ("Cart",)),
        ("&mut Cart", ("Cart",)),
        ("Arc<Mutex<Cart>>", ("Cart",)),
        ("Vec<Cart>", ("Vec",)),
        ("any", ()),
    ],
)
def test_the_types_that_a_written_type_allows(text: str, names: tuple[str, ...]) -> None:
    assert type_names(text) == names


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.py", "def f(c: Cart):\n    c.use()\n", ("Cart",)),
        ("a.py", "def f():\n    c = Cart()\n    c.use()\n", ("Cart",)),
        ("a.py", "def f():\n    c = shop.Cart.load()\n    c.use()\n", ("shop.Cart",)),
        ("a.py", "def f():\n    with Cart() as c:\n        c.use()\n", ("Cart",)),
        ("a.py", "def g() -> Cart: ...\ndef f():\n    c = g()\n    c.use()\n", ("Cart",)),
        ("a.py", "c = []\nc.use()\n", ("list",)),
        (
            "a.py",
            "class A:\n    def __init__(self, c: Cart):\n        self.c = c\n"
            "    def f(self):\n        self.c.use()\n",
            ("Cart",),
        ),
        ("a.py", "def f(c):\n    c.use()\n", ()),
        ("a.ts", "class A { constructor(private c: Cart) {} f() { this.c.use() } }", ("Cart",)),
        ("a.ts", "const c = new Cart(); c.use()", ("Cart",)),
        ("a.go", "package p\nfunc f(c *Cart) {\n\tc.use()\n}\n", ("Cart",)),
        ("a.go", "package p\nfunc f() {\n\tc := &Cart{}\n\tc.use()\n}\n", ("Cart",)),
        ("a.rs", "fn f() { let c = Cart::new(); c.use_() }", ("Cart",)),
        ("A.java", "class A { Cart c; void f() { c.use(); } }", ("Cart",)),
    ],
)
def test_the_type_of_a_receiver_is_read_where_it_is_written(
    path: str, text: str, names: tuple[str, ...]
) -> None:
    source = ParsedSource(path, text)
    mention = next(m for name in ("use", "use_") for m in source.mentions(name) if m.receiver)
    assert mention.receiver is not None
    assert type_of(source, mention.receiver) == names
