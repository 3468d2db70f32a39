from __future__ import annotations

import pytest

from evercontext.index.structure.source import (
    BINDING,
    DEFINITION,
    IMPORT,
    MEMBER,
    PLAIN,
    ParsedSource,
    is_supported,
)

TEXT = '''from a.b import X as Y, Z
__all__ = ["Shop"]


class Shop(Base):
    """Shop of Z."""

    open: bool = True

    def sell(self, a: "Z", b=1):
        self.last = a
        for item in b:
            def inner():
                return item
        return a.sell(k=1)


v = Shop()
'''


def _roles(name: str) -> list[tuple[int, str]]:
    return [(m.line, m.role) for m in ParsedSource("a.py", TEXT).mentions(name)]


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("Z", [(1, IMPORT), (10, PLAIN)]),
        ("Shop", [(2, PLAIN), (5, DEFINITION), (18, PLAIN)]),
        ("sell", [(10, DEFINITION), (15, MEMBER)]),
        ("open", [(8, DEFINITION)]),
        ("a", [(1, IMPORT), (10, BINDING), (11, PLAIN), (15, PLAIN)]),
        ("k", []),
    ],
)
def test_what_each_mention_of_a_name_is(name: str, roles: list[tuple[int, str]]) -> None:
    assert _roles(name) == roles


def test_a_name_inside_nested_functions_is_bound_where_it_is_given() -> None:
    source = ParsedSource("a.py", TEXT)
    last = source.mentions("item")[-1]
    binding = source.local_binding(last)
    assert binding is not None
    assert binding.line == 12
    assert source.enclosing(last.node) == "Shop.sell.inner"


def test_a_symbol_knows_its_class_its_lines_and_its_signature() -> None:
    source = ParsedSource("a.py", TEXT)
    symbol = source.symbol(source.mentions("sell")[0])
    assert (symbol.qualified_name, symbol.owner, symbol.kind) == ("Shop.sell", "Shop", "method")
    assert (symbol.line, symbol.end_line) == (10, 15)
    assert symbol.signature == 'def sell(self, a: "Z", b=1)'


def test_calls_and_bases_are_told_from_other_mentions() -> None:
    source = ParsedSource("a.py", TEXT)
    assert [m.is_call for m in source.mentions("Shop")] == [False, False, True]
    assert [m.is_base for m in source.mentions("Base")] == [True]


def test_only_languages_with_a_table_are_supported() -> None:
    assert is_supported("a/b.tsx")
    assert not is_supported("a/b.rb")
    assert not is_supported("README.md")


def test_a_text_that_is_no_code_of_its_language_does_no_harm() -> None:
    source = ParsedSource("a.py", "class (((\n\x00 def add(: \ufffd\nadd add.add(")
    assert isinstance(source.mentions("add"), list)
