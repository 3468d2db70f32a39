"""What is taken out before parsing changes neither lines nor definitions."""

from __future__ import annotations

import pytest
from tree_sitter import QueryCursor

from evercontext.index.chunker import find_definitions
from evercontext.index.languages import grammar_of
from evercontext.index.strip_bodies import strip_bodies

SAMPLES = {
    "python": (
        "class A:\n"
        "    def dull(self, x=(1, 2)):\n"
        '        """Say\n\n        something."""\n'
        "        return [x]\n"
        "\n"
        "    async def outer(\n        self,\n    ) -> int:\n"
        "        def inner():\n            return 1\n"
        "        return inner()\n"
        "\n"
        "LIMIT = 3\n"
    ),
    "c": (
        "static struct pair *make(int a)\n{\n"
        "#ifdef X\n  struct pair *p = 0;\n#endif\n  if(a) {\n    return p;\n  }\n  return 0;\n}\n"
        "\nint other(void) {\n  struct local { int a; } b;\n  return b.a;\n}\n"
        "static const int table[] = {\n  1,\n  2\n};\n"
    ),
    "java": (
        "/** Look (here) */\npublic class A {\n"
        "  int field = 1;\n"
        "  public int dull(int a) throws B {\n    if (a > 1) {\n      a--;\n    }\n"
        "    return a;\n  }\n"
        "  Runnable run() {\n    return new Runnable() {\n      public void run() {\n"
        "        work();\n      }\n    };\n  }\n}\n"
        "record Point(\n    int x\n) {\n  int twice() {\n    return 2 * x;\n  }\n}\n"
    ),
    "csharp": (
        "class A\n{\n    int Dull(int a)\n    {\n        return a;\n    }\n"
        "    int Outer()\n    {\n        int Inner(int b)\n        {\n            return b;\n"
        "        }\n        return Inner(1);\n    }\n}\n"
    ),
    "php": (
        "<?php\nclass A extends B\n{\n    const X = 1;\n    public $y;\n"
        "    public function dull(array $a): int\n    {\n        foreach ($a as $b) {\n"
        "            echo $b;\n        }\n        return 1;\n    }\n}\n"
        "function outer() {\n    function inner() {\n        return 1;\n    }\n}\n"
    ),
    "go": (
        'package p\n\nvar x = 1\n\nfunc Dull(a int) string {\n\ts := `\n}\n`\n\treturn s + "b"\n}\n'
        "\nfunc (t *T) Outer() {\n\ttype local struct {\n\t\ta int\n\t}\n\tvar l local\n"
        "\t_ = l\n}\n"
        "\n// func Gone() {\ntype T struct {\n\ta int\n}\n"
    ),
    "zig": (
        "const A = struct {\n    a: u32,\n    pub fn dull(self: *A) u32 {\n"
        "        if (self.a > 1) {\n            return 1;\n        }\n        return self.a;\n"
        "    }\n};\n"
        "fn outer() type {\n    return struct {\n        fn inner() void {\n"
        "            work();\n        }\n    };\n}\n"
        'test "it works" {\n    _ = outer();\n}\n'
    ),
    "rust": (
        "struct A {\n    a: u32,\n}\nimpl A {\n    fn dull(&self) -> u32 {\n"
        "        match self.a {\n"
        "            1 => 2,\n            _ => 3,\n        }\n    }\n}\n"
        "fn outer() {\n    fn inner() -> u32 {\n        1\n    }\n    inner();\n}\n"
    ),
    "lua": (
        "local M = {}\nfunction M.dull(a)\n  if a then\n    return 1\n  end\nend\n"
        "M.outer = function(a)\n  local function inner()\n    return a\n  end\n"
        "  return inner\nend\n"
    ),
    "elixir": (
        'defmodule A do\n  @doc """\n  Says.\n  """\n  def dull(a) do\n    case a do\n'
        "      1 -> 2\n    end\n  end\n\n  defmacro outer() do\n    quote do\n"
        "      def inner(b) do\n        b\n      end\n    end\n  end\nend\n"
    ),
    "ruby": (
        "module A\n  class B\n    LIMIT = 1\n    attr_reader :x\n    def dull(a)\n"
        "      a.each do |b|\n"
        "        puts b\n      end\n    end\n\n    def self.outer\n"
        "      define_method :inner do\n        1\n      end\n    end\n  end\nend\n"
    ),
    "scala": (
        "/** Says\n  * class No. */\nclass A {\n  /* one */ val x = 1 /* two */\n"
        "  def f = {\n    x\n  }\n}\n"
    ),
    "haskell": (
        "module A where\n\ndata P = P\n  { px :: Int\n  }\n\n-- | Says.\ndull :: Int\n     -> Int\n"
        "dull x = case x of\n  1 -> 2\n  _ -> y\n  where y = 3\n\n"
        "guarded x\n  | x > 1 = 2\n  | otherwise = 3\n\n(<+>) :: Int -> Int -> Int\n"
        "a <+> b = a + b\n\nremarked x = x\n  -- of one thing\n\n  -- and of another\n\n"
        "arrow x = x\n  --> x\n"
    ),
}


def definitions(text: str, language: str) -> set[tuple[str, int, int]]:
    """Return what the parser finds in a text as it is."""
    grammar = grammar_of(language)
    assert grammar is not None
    parser, query = grammar
    tree = parser.parse(text.encode())
    assert not tree.root_node.has_error
    found = set()
    for _, captures in QueryCursor(query).matches(tree.root_node):
        name = next(captures[k][0] for k in ("type", "function", "other", "impl") if k in captures)
        whole = captures["def"][0]
        end = whole.end_point.row + (1 if whole.end_point.column else 0)
        assert name.text is not None
        found.add((name.text.decode(), whole.start_point.row + 1, end))
    return found


@pytest.mark.contract("E36")
@pytest.mark.parametrize("language", SAMPLES)
def test_definitions_are_those_of_the_whole_text(language: str) -> None:
    text = SAMPLES[language]
    found = {(d.name, d.start, d.end) for d in find_definitions(text, language)}
    assert found == definitions(text, language)


@pytest.mark.parametrize("language", SAMPLES)
def test_bodies_go_and_lines_stay(language: str) -> None:
    text = SAMPLES[language]
    parsed = strip_bodies(text, language)
    assert parsed.count("\n") == text.count("\n")
    assert len(parsed) < len(text)


def test_a_text_without_bodies_is_left_alone() -> None:
    for language in ("python", "c", "haskell", "markdown", "swift"):
        text = "-- nothing here\n"
        assert strip_bodies(text, language) is text


def test_a_text_that_does_not_parse_without_its_bodies_is_parsed_whole() -> None:
    # What looks like the end of the method is inside a text of several lines.
    text = "function M.a()\n  return [[\nend\n]]\nend\nfunction M.b()\n  return 1\nend\n"
    assert strip_bodies(text, "lua") != text
    found = {(d.name, d.start, d.end) for d in find_definitions(text, "lua")}
    assert found == definitions(text, "lua")


def test_a_body_that_closes_at_another_depth_is_kept() -> None:
    text = "class A {\n  A() {\n    x();\n    }\n\n  int f(int a) {\n    return a;\n  }\n}\n"
    found = {(d.name, d.start, d.end) for d in find_definitions(text, "java")}
    assert found == definitions(text, "java")


ASKEW = {
    "a brace left of the method": (
        "java",
        "class A {\n    void a() {\n        if (x) {\n            y();\n        }\n   }\n\n"
        "    void b() {\n        z();\n    }\n}\n",
    ),
    "a brace right of the function": (
        "c",
        "int a(void) {\n  if (x) {\n    y();\n  }\n  return 0;\n }\n\n"
        "int b(void) {\n  return 1;\n}\n",
    ),
    "a method on one line": (
        "ruby",
        "class A\n  class B\n    def a(*)  1  end\n  end\n\n  it 'works' do\n"
        "    b do\n      c\n    end\n  end\nend\n",
    ),
    "a function deep inside a method": (
        "csharp",
        "class A\n{\n    void M()\n    {\n        if (x)\n        {\n"
        "            void Local<T>(T a)\n            {\n                y();\n            }\n"
        "        }\n    }\n}\n",
    ),
    "a constant with a method": (
        "java",
        "enum A {\n    ONE(1) {\n        String name() {\n            return x;\n        }\n"
        "    };\n}\n",
    ),
}


@pytest.mark.parametrize("case", ASKEW)
def test_bodies_that_only_seem_to_be_dull_are_kept(case: str) -> None:
    language, text = ASKEW[case]
    found = {(d.name, d.start, d.end) for d in find_definitions(text, language)}
    assert found == definitions(text, language)
    assert len(found) > 1


def test_a_text_made_to_be_slow_ends() -> None:
    deep = "".join(f"{' ' * i}f() {{\n" for i in range(500))
    assert strip_bodies(deep, "go") == deep
    flat = "f() {\n" * 50_000 + "type\n}\n"
    assert strip_bodies(flat, "go").count("\n") == flat.count("\n")
    for language, text in (
        ("python", "def f("),
        ("scala", "/*\n"),
        ("lua", "function "),
        ("ruby", "A"),
    ):
        assert strip_bodies(text * 50_000, language) == text * 50_000
