from __future__ import annotations

import pytest

from evercontext.index.structure.imports import imports_of
from evercontext.index.structure.source import ParsedSource


@pytest.mark.parametrize(
    ("path", "text", "rows"),
    [
        ("a.py", "import a.b as c, d.e\n", [("c", "a.b", None), ("d.e", "d.e", None)]),
        ("a.py", "from ..x import Y as Z, W\n", [("Z", "..x", "Y"), ("W", "..x", "W")]),
        ("a.py", "def f():\n    from x import *\n", [("*", "x", "*")]),
        ("a.ts", "import D, { X as Y } from './m'\n", [("Y", "./m", "X"), ("D", "./m", "default")]),
        ("a.ts", "import * as ns from 'n'\nimport 'p'\n", [("ns", "n", None), ("", "p", None)]),
        ("a.ts", "export * from './s'\n", [("*", "./s", "*")]),
        ("a.js", "const { X, Y: Z } = require('m')\n", [("X", "m", "X"), ("Z", "m", "Y")]),
        ("a.js", "const m = require('./m')\n", [("m", "./m", None)]),
        (
            "a.go",
            'package p\nimport (\n\t"a/b"\n\tz "c/d"\n\t"e/f/v2"\n)\n',
            [("b", "a/b", None), ("z", "c/d", None), ("f", "e/f/v2", None)],
        ),
        (
            "a.rs",
            "use a::b::{X, Y as Z, c::*};\n",
            [("X", "a::b", "X"), ("Z", "a::b", "Y"), ("*", "a::b::c", "*")],
        ),
        ("a.rs", "mod cart;\n", [("cart", "self::cart", None)]),
        (
            "A.java",
            "import a.b.C;\nimport static d.E.f;\nimport g.*;\n",
            [("C", "a.b", "C"), ("f", "d.E", "f"), ("*", "g", "*")],
        ),
    ],
)
def test_imports_are_read_as_they_are_written(
    path: str, text: str, rows: list[tuple[str, str, str | None]]
) -> None:
    read = imports_of(ParsedSource(path, text))
    assert [(i.local, i.module, i.name) for i in read] == rows
