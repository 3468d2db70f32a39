"""Definitions in languages that are read without a grammar: Kotlin, protocol buffers and SQL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evercontext.index.chunker import find_definitions
from evercontext.index.outline import outline

KOTLIN = '''\
package a

@Suppress("one", "two")
class Shop<
    T : Any
    >
private constructor(val till: Till) : Base(), Open {
    companion object {
        const val LIMIT = 3
    }

    override val size: Int
        get() = till.size

    val (left, right) = pair

    fun <T> Map<Pair<T, List<Set<T>>>, T>.total(): T =
        values
            .first()

    // fun commented() = 1
    fun shout(): String {
        val text = "} fun quoted() ${ if (open) { "}" } else "" }"
        if (closed) return@shout
        var count = 0
        return """class No { """
    }

    fun uuid(value: Int) = value

    override fun last() = object : Runnable {
        override fun run() {}
    }
}

fun interface Taker { fun take(x: Int) }
typealias Price = Map<String,
    Int>
data object Nobody
fun `in quotes`() = when (val it = next()) {
    else -> it
}
'''

PROTO = """\
syntax = "proto3"; // message Not {
message Order {
  message Line { string name = 1; }
  oneof kind { string message = 2 [default = "}"]; }
  group Part = 3 { }
}
service Shop {
  rpc Buy(Order) returns (Order);
  rpc Sell(stream Order)
      returns (Order) {
    option (http) = { get: "/v1" };
  }
}
"""

SQL = """\
CREATE TABLE shop.orders (
  id int, note text DEFAULT 'CREATE TABLE no (;'
);
COPY shop.orders FROM stdin;
1\tit's CREATE TABLE data
\\.
CREATE UNLOGGED TABLE IF NOT EXISTS "Odd Name" PARTITION OF orders FOR VALUES FROM (1) TO (2);
SELECT 1 LIKE 'a\\' COLLATE x; -- CREATE VIEW none AS
CREATE OR REPLACE VIEW open_orders AS
  SELECT 'it\\'s; fine' FROM orders;
CREATE FUNCTION total(a int) RETURNS bool AS $body$
BEGIN
  RETURN a;
END;
$body$ LANGUAGE plpgsql;
CREATE FUNCTION plain() RETURNS int
BEGIN
  DECLARE x int;
  RETURN x;
END;
CREATE VIEW last AS SELECT 1
"""

FOUND = {
    "kotlin": (
        KOTLIN,
        [
            ("Shop", "type", 3, 34),
            ("LIMIT", "other", 9, 9),
            ("size", "other", 12, 13),
            ("total", "function", 17, 19),
            ("shout", "function", 22, 27),
            ("text", "other", 23, 23),
            ("count", "other", 25, 25),
            ("uuid", "function", 29, 29),
            ("last", "function", 31, 33),
            ("run", "function", 32, 32),
            ("Taker", "type", 36, 36),
            ("take", "function", 36, 36),
            ("Price", "type", 37, 38),
            ("Nobody", "type", 39, 39),
            ("`in quotes`", "function", 40, 42),
        ],
    ),
    "proto": (
        PROTO,
        [
            ("Order", "type", 2, 6),
            ("Line", "type", 3, 3),
            ("Shop", "type", 7, 13),
            ("Buy", "function", 8, 8),
            ("Sell", "function", 9, 12),
        ],
    ),
    "sql": (
        SQL,
        [
            ("orders", "type", 1, 3),
            ('"Odd Name"', "type", 7, 7),
            ("open_orders", "type", 9, 10),
            ("total", "function", 11, 15),
            ("plain", "function", 16, 20),
            ("last", "type", 21, 21),
        ],
    ),
}


@pytest.mark.contract("E36")
@pytest.mark.parametrize("language", FOUND)
def test_definitions_and_their_lines(language: str) -> None:
    text, expected = FOUND[language]
    assert [(d.name, d.kind, d.start, d.end) for d in find_definitions(text, language)] == expected


@pytest.mark.parametrize("language", FOUND)
def test_windows_line_ends_change_nothing(language: str) -> None:
    text, expected = FOUND[language]
    lines = text.replace("\n", "\r\n")
    assert [(d.name, d.kind, d.start, d.end) for d in find_definitions(lines, language)] == expected


def test_other_languages_are_left_to_their_grammars() -> None:
    assert outline("class A: pass\n", "python") is None


PIECES = [
    "val a",
    " = ",
    "\n",
    "fun <",
    "fun (",
    "class A",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    '"',
    '"""',
    "${",
    "'",
    "/*",
    "*/",
    "//",
    "`",
    "@A(",
    "get() ",
    "private ",
    "companion object ",
    "message A {",
    "rpc A(",
    ";",
    "CREATE TABLE ",
    "CREATE FUNCTION a",
    " BEGIN ",
    " END ",
    "$$",
    "COPY a FROM stdin;",
    "\\.",
    "\\",
    "\ud800",
    "日本",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from(sorted(FOUND)))
def test_any_text_has_definitions_on_its_lines(text: str, language: str) -> None:
    last = text.count("\n") + 1
    for definition in find_definitions(text, language):
        assert 1 <= definition.start <= definition.end <= last
        assert definition.name.encode()


@pytest.mark.parametrize("language", FOUND)
def test_a_text_made_to_be_slow_ends(language: str) -> None:
    for piece in PIECES:
        find_definitions(piece * (30_000 // len(piece)), language)
    for start, middle in (
        ("val a", " "),
        ("fun <a", "fun <a"),
        ("CREATE TABLE a", " "),
        ("((", "]"),
    ):
        find_definitions(start * 5_000 + middle * 30_000, language)
