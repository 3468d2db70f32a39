from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.index.chunker import (
    LONGEST,
    _types_by_line,
    cut,
    find_definitions,
)
from evercontext.index.definitions import Named, Span, shown_symbol
from evercontext.index.languages import language_of
from tests.index.world import SHOP

SOURCES = {
    "a.py": ("class A:\n    def run(self):\n        return 1\n", ["A", "run"]),
    "a.js": ("class A { go() { return 1 } }\nfunction f() {}\n", ["A", "go", "f"]),
    "a.ts": ("interface I { x: number }\nexport const f = () => 1;\n", ["I", "f"]),
    "a.tsx": ("export function View() { return <p/> }\n", ["View"]),
    "a.go": ("package a\n\ntype T struct{}\n\nfunc (t T) Go() {}\n", ["T", "Go"]),
    "a.java": ("class A { int f() { return 1; } }\n", ["A", "f"]),
    "a.php": ("<?php\nclass A { function f() {} }\n", ["A", "f"]),
    "a.rb": ("module M\n  class A\n    def f; end\n  end\nend\n", ["M", "A", "f"]),
    "a.c": ("struct s { int a; };\nint f(void) { return 1; }\n", ["s", "f"]),
    "a.cpp": ("class A { void g(); };\nvoid A::g() {}\n", ["A", "A::g"]),
    "a.cs": ("class A { int F() { return 1; } }\n", ["A", "F"]),
    "a.kt": ("class A { fun f() = 1 }\nobject O\n", ["A", "f", "O"]),
    "a.scala": ("trait T\nobject O { def f = 1 }\n", ["T", "O", "f"]),
    "a.swift": ("protocol P {}\nclass A { func f() {} }\n", ["P", "A", "f"]),
    "a.rs": ("struct S;\nimpl S { fn f() {} }\ntrait T {}\n", ["S", "f", "T"]),
    "a.ex": ("defmodule M.N do\n  def f(x), do: x\nend\n", ["M.N", "f"]),
    "a.hs": ("module A where\n\ndata D = D\n\nf :: Int\nf = 1\n", ["D", "f"]),
    "a.lua": ("function M.f(x) return x end\nlocal function g() end\n", ["M.f", "g"]),
    "a.zig": ("const S = struct { a: u8 };\npub fn f() void {}\n", ["S", "f"]),
    "a.sh": ("f() {\n  echo\n}\n", ["f"]),
}


@pytest.mark.contract("E36")
@pytest.mark.parametrize("name", SOURCES)
def test_definitions_are_found_in_every_language(name: str) -> None:
    text, wanted = SOURCES[name]
    language = language_of(name)
    assert language is not None
    found = [d.name for d in find_definitions(text, language)]
    assert [n for n in wanted if n not in found] == []


@pytest.mark.contract("E36")
def test_chunks_end_where_functions_end() -> None:
    text = SHOP["shop/payment.py"]
    lines = text.split("\n")
    spans = cut(lines, "python", find_definitions(text, "python"))
    by_symbol = {span.symbol: span for span in spans}
    assert by_symbol["refund"] == Span(12, 14, (Named("refund", "function"),))
    charge = by_symbol["PaymentGateway.charge"]
    assert lines[charge.start - 1].strip().startswith("def charge")


@pytest.mark.contract("E36")
def test_a_chunk_names_all_that_it_defines_and_methods_with_their_class() -> None:
    """F3: of several definitions in one chunk only the first was named."""
    text = "def add(a, b): return a + b\ndef subtract(a, b): return a - b\ndef greet(): return 1\n"
    [span] = cut(text.split("\n"), "python", find_definitions(text, "python"))
    assert [named.name for named in span.names] == ["add", "subtract", "greet"]
    assert shown_symbol(span.names) == "add, subtract, greet"
    assert shown_symbol(span.names, {"greet"}) == "greet"
    text = SHOP["shop/cart.py"]
    spans = cut(text.split("\n"), "python", find_definitions(text, "python"))
    names = [named.name for span in spans for named in span.names]
    assert names == ["Cart", "Cart.__init__", "Cart.add_item", "Cart.total_price"]
    assert shown_symbol([Named("Cart", "type"), Named("Cart.__init__", "function")]) == "Cart"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.h",
            "MACRO_BEGIN\nMACRO_EXPORT template <typename T> class Buffer : public Base<T> {\n"
            " public:\n  Buffer() {}\n};\nclass Later;\n",
        ),
        (
            "a.hpp",
            "NS_BEGIN\nTPL_DECLARATION\nclass Buffer // NOLINT\n    : public Base\n{\n"
            "  friend class Later;\n  Buffer() {}\n};\n",
        ),
        ("a.cs", "#if X\npublic\n#endif\nref partial struct Buffer\n{\n  Buffer(Later l) { }\n}\n"),
    ],
)
def test_a_type_behind_a_macro_is_a_type(name: str, text: str) -> None:
    """25.2: its constructor was shown, as the parser knew no type of that name."""
    found = find_definitions(text, language_of(name) or "")
    assert "Buffer" in {d.name for d in found if d.kind == "type"}
    assert "Later" not in {d.name for d in found}


@pytest.mark.parametrize(
    "piece", ["class ", "struct a ", "template <", "a b c d ", "class A //", "class A:\n"]
)
def test_long_lines_that_never_come_to_a_type_name_none(piece: str) -> None:
    text = (piece * (1_000 // len(piece)) + "\n") * 200
    assert len(list(_types_by_line(text))) <= text.count(":")


def test_a_piece_of_a_long_function_is_named_after_it_and_defines_nothing() -> None:
    text = "def long():\n" + "".join(f"    x = {n}\n" for n in range(100))
    spans = cut(text.split("\n"), "python", find_definitions(text, "python"))
    assert len(spans) > 1
    assert [span.symbol for span in spans] == ["long"] * len(spans)
    assert [span.names[0].begins for span in spans] == [True] + [False] * (len(spans) - 1)


@pytest.mark.contract("E36")
def test_prose_is_cut_at_headings_and_not_inside_code() -> None:
    lines = [
        "# One",
        "",
        "text",
        "",
        "```",
        "# no heading",
        "```",
        "",
        "## Two",
        "",
        "more",
        "and more",
    ]
    assert [(s.start, s.end) for s in cut(lines, "markdown", [])] == [(1, 7), (9, 12)]


@pytest.mark.contract("E36")
def test_a_long_text_without_definitions_is_cut_by_length() -> None:
    spans = cut([f"line {i}" for i in range(500)], "text", [])
    assert max(s.end - s.start + 1 for s in spans) <= LONGEST
    assert len(spans) > 5


Lines = st.lists(st.sampled_from(["", "x = 1", "def f():", "    pass", "# c", "class A:", "}"]))


@given(Lines, st.sampled_from(["python", "markdown", "json", "text", "code"]))
def test_every_line_with_text_is_in_exactly_one_chunk(lines: list[str], language: str) -> None:
    text = "\n".join(lines)
    rows = text.split("\n")
    spans = cut(rows, language, find_definitions(text, language))
    covered = [n for s in spans for n in range(s.start, s.end + 1)]
    assert len(covered) == len(set(covered))
    assert {n for n, line in enumerate(rows, 1) if line.strip()} <= set(covered)


@pytest.mark.case(131)
@pytest.mark.parametrize("name", ["a.py", "a.js", "a.c", "a.rs", "a.rb", "a.hs"])
@pytest.mark.parametrize("piece", ["(", "[{", "def f():\n ", "{ a: ", "/*", "'", "if x {"])
def test_hostile_nesting_neither_crashes_nor_hangs(name: str, piece: str) -> None:
    language = language_of(name)
    assert language is not None
    text = piece * (20_000 // len(piece))
    assert isinstance(cut(text.split("\n"), language, find_definitions(text, language)), list)
