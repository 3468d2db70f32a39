"""Real outputs, recorded: pytest 9.2, unittest of Python 3.11, ruff 0.17, mypy 2.4, node 20,
vitest 4.1, go 1.27, cargo 1.95."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evercontext.workspace.failures import go_and_rust, javascript, linters, python
from evercontext.workspace.failures.failure import Failure, Hint, inside
from evercontext.workspace.failures.parse import MOST_FAILURES, read_failures, unreadable_failure

OUTPUTS = Path(__file__).parent / "outputs"
ROOT = "/srv/shop"


def read(name: str) -> tuple[Failure, ...]:
    return read_failures((OUTPUTS / f"{name}.txt").read_bytes(), ROOT)


def short(name: str) -> list[tuple[str, str, str | None]]:
    return [(failure.kind, failure.where, failure.test) for failure in read(name)]


CART = "tests/test_cart.py"
TESTS = [
    ("error", f"{CART}:25", f"{CART}::test_fixture"),
    ("assertion", CART, f"{CART}::test_unknown_fixture"),
    ("assertion", f"{CART}:7", f"{CART}::test_total"),
    ("name", "shop/cart.py:9", f"{CART}::test_load[a b]"),
    ("name", "shop/cart.py:9", rf"{CART}::test_load[\u65e5\u672c]"),
    ("type", f"{CART}:17", f"{CART}::TestCart::test_add"),
    ("attribute", "shop/cart.py:20", f"{CART}::TestCart::test_size"),
]


@pytest.mark.parametrize("style", ["tests", "colour", "short", "native"])
def test_pytest_in_every_style(style: str) -> None:
    assert short(f"pytest_{style}") == TESTS


def test_pytest_with_one_line_per_failure() -> None:
    assert short("pytest_line")[2:] == TESTS[2:]


def test_a_message_is_whole_and_may_be_japanese() -> None:
    total = read("pytest_tests")[2]
    assert total.message.startswith("AssertionError: 合計が違います\nassert 1.5 == 3")
    assert (total.tool, total.code, total.blocks) == ("pytest", "AssertionError", False)


def test_pytest_that_could_not_collect() -> None:
    assert short("pytest") == [
        ("syntax", "shop/broken.py:1", "tests/test_broken.py"),
        ("import", "shop/circle_b.py:1", "tests/test_circle.py"),
        ("import", "tests/test_missing.py:1", "tests/test_missing.py"),
        ("import", "tests/test_module.py:1", "tests/test_module.py"),
    ]
    assert all(failure.blocks for failure in read("pytest"))
    assert [frame.file for frame in read("pytest")[1].frames] == [
        "tests/test_circle.py",
        "shop/circle_a.py",
        "shop/circle_b.py",
    ]


def test_pytest_that_could_not_load_its_conftest() -> None:
    assert short("pytest_conftest") == [("import", "tests/conftest.py:1", "tests/conftest.py")]


def test_unittest() -> None:
    name = "tests.test_unit.CartTest"
    assert short("unittest") == [
        ("name", "shop/cart.py:9", f"{name}.test_load"),
        ("import", "tests/test_unit2.py:1", "tests.test_unit2"),
        ("assertion", "tests/test_unit.py:16", f"{name}.test_parts (n=1)"),
        ("assertion", "tests/test_unit.py:8", f"{name}.test_total"),
    ]
    assert read("unittest")[3].message == "AssertionError: 1.5 != 3 : 合計"


@pytest.mark.parametrize("style", ["full", "concise", "json"])
def test_ruff_in_every_style(style: str) -> None:
    found = [(f.kind, f.where, f.column, f.code) for f in read(f"ruff_{style}")]
    assert found == [
        ("syntax", "shop/broken.py:1", 9, "invalid-syntax"),
        ("name", "shop/cart.py:9", 12, "F821"),
        ("name", "shop/cart.py:9", 23, "F821"),
        ("name", "shop/cart.py:17", 9, "F821"),
        ("lint", "tests/test_circle.py:1", 8, "F401"),
        ("lint", "tests/test_missing.py:1", 23, "F401"),
        ("lint", "tests/test_module.py:1", 8, "F401"),
    ]


@pytest.mark.parametrize("style", ["mypy", "mypy_pretty"])
def test_mypy(style: str) -> None:
    found = [(f.kind, f.where, f.code, f.message[:18]) for f in read(style)]
    assert found == [
        ("type", "t.py:3", "return-value", "Incompatible retur"),
        ("type", "t.py:4", "arg-type", 'Argument 1 to "f" '),
        ("name", "t.py:6", "name-defined", 'Name "total" is no'),
        ("import", "t.py:7", "import-not-found", "Cannot find implem"),
    ]


@pytest.mark.parametrize("style", ["spec", "tap"])
def test_node_in_both_reporters(style: str) -> None:
    found = short(f"node_{style}")
    assert [(kind, where) for kind, where, _ in found] == [
        ("syntax", "src/bad.js:2"),
        ("assertion", "test/cart.test.js:6"),
        ("name", "src/cart.js:6"),
        ("type", "src/cart.js:15"),
        ("import", "test/export.test.js:1"),
        ("import", "test/path.test.js"),
    ]
    assert found[1][2] == "test/cart.test.js > total 合計"
    assert read(f"node_{style}")[0].message == "SyntaxError: missing ) after argument list"


def test_vitest() -> None:
    assert short("vitest") == [
        ("syntax", "src/bad.js:1", "test/bad.test.js"),
        ("import", "test/path.test.js:2", "test/path.test.js"),
        ("assertion", "test/cart.test.js:6", "test/cart.test.js > total 合計"),
        ("name", "src/cart.js:6", "test/cart.test.js > load"),
        ("type", "src/cart.js:15", "test/cart.test.js > Cart > has a size"),
        ("assertion", "test/eq.test.js:1", "test/eq.test.js > eq"),
    ]


def test_go() -> None:
    assert [(f.kind, f.where, f.column, f.message) for f in read("go_test")][:3] == [
        ("import", "cart.go:4", 2, '"os" imported and not used'),
        ("error", "cart.go:12", 2, "declared and not used: unused"),
        ("name", "cart.go:13", 9, "undefined: smu"),
    ]
    assert [f.where for f in read("go_vet")] == ["cart.go:13", "calc/calc.go:9"]
    assert short("go_run") == [
        ("assertion", "calc/calc_test.go:7", "example.com/shop/calc.TestAdd"),
        ("assertion", "calc/calc_test.go:9", "example.com/shop/calc.TestAdd/sub_case"),
        ("error", "calc/calc.go:7", "example.com/shop/calc.TestBoom"),
    ]
    assert short("gofmt") == [("format", "calc/calc.go", None)]


def test_cargo() -> None:
    assert short("cargo_test") == [
        ("error", "src/lib.rs:19", "tests::panics"),
        ("assertion", "src/lib.rs:13", "tests::adds"),
    ]
    assert "合計" in read("cargo_test")[1].message
    assert [(f.kind, f.line, f.code) for f in read("cargo_build")] == [
        ("name", 3, "E0425"),
        ("name", 4, "E0433"),
        ("name", 8, "E0425"),
        ("type", 12, "E0308"),
        ("name", 13, "E0425"),
        ("attribute", 17, "E0599"),
    ]
    assert short("cargo_syntax") == [("syntax", "src/util.rs:8", None)]
    assert short("cargo_fmt") == [("format", "src/util.rs", None)]
    assert [f.code for f in read("cargo_clippy")] == ["E0432", "E0432", "E0425"]


def test_what_rustc_proposes_is_kept() -> None:
    hints = [failure.hints for failure in read("cargo_build")]
    assert hints[0] == (Hint(1, "use std::collections::HashMap;"),)
    assert hints[2] == (Hint(8, "    found", "    fuond"),)
    assert hints[3] == ()
    assert hints[4] == (Hint(13, "    helper(x)", ""),)


def test_formatters() -> None:
    assert short("ruff_format") == [("format", "a.py", None)]
    for said in ("would reformat a/b.py", "Would reformat: a/b.py", "[warn] a/b.py"):
        assert [f.where for f in read_failures(f"{said}\n", ROOT)] == ["a/b.py"]


def test_a_bare_traceback_and_an_unknown_tool() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/srv/shop/a.py", line 3, in f\n    x\n'
        "KeyError: 'あ'\n"
    )
    assert [(f.kind, f.where, f.message) for f in read_failures(text, ROOT)] == [
        ("error", "a.py:3", "KeyError: 'あ'")
    ]
    assert [f.where for f in read_failures("src/a.ts:3:5 - error TS2304: x\n", ROOT)] == [
        "src/a.ts:3"
    ]
    assert read_failures("all is well\n", ROOT) == ()
    assert unreadable_failure(("/usr/bin/make", "test"), "a\n\nno rule\n").message == "a\nno rule"


def test_places_outside_the_root_are_no_places() -> None:
    assert inside("/srv/shop/a/b.py", ROOT) == "a/b.py"
    assert inside("./a.go", ROOT) == "a.go"
    assert inside("file:///srv/shop/a.js", ROOT) == "a.js"
    for outside in (
        "/etc/passwd",
        "/srv/shopping/a.py",
        "../a.py",
        "a/../../b.py",
        "<string>",
        "/srv/shop/.venv/lib/x.py",
        "node_modules/x/i.js",
    ):
        assert inside(outside, ROOT) is None


@pytest.mark.parametrize(
    "line",
    [
        "a" * 300_000,
        "not ok 1 - \x1b[31m",
        "--> a:1:1",
        "E   " * 999,
        "x.py:1:" * 4_000,
        "error[E0425]: " + "(" * 90_000,
    ],
)
def test_hostile_output_is_read_and_bounded(line: str) -> None:
    found = read_failures("\n".join([line] * 500), ROOT)
    assert len(found) <= MOST_FAILURES
    assert all(len(failure.message) < 2_100 for failure in found)


@pytest.mark.parametrize(
    "read_one",
    [
        python.read_pytest,
        python.read_unittest,
        python.read_traceback,
        javascript.read_node,
        javascript.read_vitest,
        javascript.read_crash,
        go_and_rust.read_go,
        go_and_rust.read_rust,
        linters.read_ruff,
        linters.read_mypy,
        linters.read_formatters,
        linters.read_generic,
    ],
)
def test_a_reader_finds_nothing_in_prose(read_one: Callable[[str, str], list[Failure]]) -> None:
    said = "Everything is fine.\nエラーはありません。\n0 problems (0 errors)\n"
    assert read_one(said, ROOT) == []


def test_thousands_of_failures_are_cut() -> None:
    text = "\n".join(f"a{n}.py:1:1: F401 `x` imported but unused" for n in range(5_000))
    assert len(read_failures(text, ROOT)) == MOST_FAILURES


def test_a_failure_survives_json() -> None:
    for name in ("pytest", "cargo_build", "node_tap"):
        for failure in read(name):
            assert Failure.from_json(json.loads(json.dumps(failure.to_json()))) == failure


def test_a_failure_is_recognised_after_lines_have_moved() -> None:
    one, other = (
        Failure("ruff", "lint", "`os` imported but unused", "a.py", line, code="F401")
        for line in (3, 9)
    )
    assert one.key == other.key
