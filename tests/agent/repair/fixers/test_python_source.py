"""Names, imports and syntax of Python, without a project."""

from __future__ import annotations

import ast

import pytest

from evercontext.agent.repair.fixers.imports import add_import, remove_import
from evercontext.agent.repair.fixers.python_source import bound, imports_of, module_of, replace_word
from evercontext.agent.repair.fixers.spelling import distance, nearest
from evercontext.agent.repair.fixers.syntax import repaired_sources


@pytest.mark.parametrize(
    ("wrong", "names", "right"),
    [
        ("artilce", ["article", "articles"], "article"),
        ("totl", ["total", "title"], "total"),
        ("loadPrices", ["load_prices"], "load_prices"),
        ("count", ["mount", "court"], None),
        ("xy", ["xyz"], None),
        ("banana", ["orange"], None),
        ("合計額", ["合計金額"], "合計金額"),
    ],
)
def test_only_the_one_name_that_is_nearest(wrong: str, names: list[str], right: str | None) -> None:
    assert nearest(wrong, names) == right


def test_swapped_letters_are_one_slip() -> None:
    assert [distance("ab", "ba"), distance("abc", "abc"), distance("", "abc")] == [1, 0, 3]


def test_names_are_replaced_only_where_they_are_names() -> None:
    text = "totl = 1  # totl\nprint('totl', totl, totl2)\n"
    assert replace_word(text, "totl", "total") == "total = 1  # totl\nprint('totl', total, totl2)\n"
    assert replace_word("あ = 'x'; b = c(\n", "b", "d") == "あ = 'x'; d = c(\n"


def test_what_a_module_binds_and_imports() -> None:
    tree = ast.parse("from .b import x as y\nimport os.path\n\ndef f(a, *, b):\n    c = 1\n")
    assert bound(tree) == {"y", "os", "f", "a", "b", "c"}
    assert list(imports_of(tree, "y", "shop.deep.a")) == ["from shop.deep.b import x as y"]
    assert [module_of(path) for path in ("src/a/b.py", "a/__init__.py", "a.py")] == [
        "a.b",
        "a",
        "a",
    ]


@pytest.mark.parametrize(
    ("text", "statement", "right"),
    [
        ("x = 1\n", "import os", "import os\n\nx = 1\n"),
        ('"""Doc."""\n\nx = 1\n', "import os", '"""Doc."""\n\nimport os\n\nx = 1\n'),
        ("import sys\n\nx = 1\n", "import os", "import os\nimport sys\n\nx = 1\n"),
        ("import os\n\nimport shop\n", "import re", "import os\nimport re\n\nimport shop\n"),
        ("from a import c\n", "from a import b", "from a import b, c\n"),
        (
            "from __future__ import annotations\n\nx = 1\n",
            "import os",
            "from __future__ import annotations\n\nimport os\n\nx = 1\n",
        ),
        ("import os\r\nx = 1\r\n", "import re", "import os\r\nimport re\r\nx = 1\r\n"),
        (
            "#!/usr/bin/python\ndef f():\n    pass\n",
            "import os",
            "#!/usr/bin/python\nimport os\n\n\ndef f():\n    pass\n",
        ),
    ],
)
def test_an_import_goes_where_it_belongs(text: str, statement: str, right: str) -> None:
    assert add_import(text, statement, frozenset({"shop"})) == right


@pytest.mark.parametrize(
    ("text", "name", "right"),
    [
        ("import os\nimport sys\n", "os", "import sys\n"),
        ("from a import b, c\n", "a.b", "from a import c\n"),
        ("from a import (\n    b,\n    c,\n)\nx = 1\n", "a.c", "from a import b\nx = 1\n"),
        ("import a as b\n", "a as b", ""),
        ("def f():\n    import os\n", "os", "def f():\n    pass\n"),
        ("x = 1\n", "os", "x = 1\n"),
    ],
)
def test_an_import_is_left_out(text: str, name: str, right: str) -> None:
    assert remove_import(text, name) == right


@pytest.mark.parametrize(
    ("broken", "right"),
    [
        ("def f(x)\n    return x\n", "def f(x):\n    return x\n"),
        ("if x  # なぜ\n    y\n", "if x:  # なぜ\n    y\n"),
        ("print((1)\n", "print((1))\n"),
        ("x = [1, 2\ny = 3\n", "x = [1, 2]\ny = 3\n"),
        ("f(1))\n", "f(1)\n"),
        ("x = 'abc\n", "x = 'abc'\n"),
        ("print('日本)\n", "print('日本')\n"),
        ("if x = 1:\n    pass\n", "if x == 1:\n    pass\n"),
        ("print 'x'\n", "print('x')\n"),
        ("x = [1 2]\n", "x = [1, 2]\n"),
        ("def f():\nreturn 1\n", "def f():\n    return 1\n"),
        ("x = 1\n  y = 2\n", "x = 1\ny = 2\n"),
        ("def f():\n    retrun 1\n", "def f():\n    return 1\n"),
        ("form os import path\n", "from os import path\n"),
        ("class A\n    x = 1\n", "class A:\n    x = 1\n"),
        ("def f(x:\n    return x\n", "def f(x):\n    return x\n"),
        ('def f():\n    """Text.""\n    return 1\n', 'def f():\n    """Text."""\n    return 1\n'),
        ("for x in y\n    a\nwhile True\n    b\n", "for x in y:\n    a\nwhile True:\n    b\n"),
    ],
)
def test_small_slips_of_syntax(broken: str, right: str) -> None:
    assert right in repaired_sources(broken)


@pytest.mark.parametrize("text", ["", "x = 1\n", "))((\n", "def def def\n", "\x00", "(" * 300])
def test_what_is_whole_or_beyond_help_is_left_alone(text: str) -> None:
    for made in repaired_sources(text):
        compile(made, "x", "exec")
