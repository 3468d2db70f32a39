"""Detect the language of a file, and how to find its definitions.

Each grammar comes in a wheel of its own. A language with a file in ``queries/`` names its
definitions by tree-sitter captures: ``@def`` around the whole, and ``@type``, ``@function``,
``@impl`` or ``@other`` on the name. What has no grammar worth its weight, ``outline`` reads.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module, resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Parser, Query

_EXTENSIONS = {
    "python": "py pyi pyx pxd",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "java": "java",
    "php": "php",
    "ruby": "rb rake gemspec ru",
    "c": "c h",
    "cpp": "cc cpp cxx hpp hh hxx ipp tpp inl",
    "csharp": "cs",
    "kotlin": "kt kts",
    "scala": "scala sc",
    "swift": "swift",
    "rust": "rs",
    "elixir": "ex exs",
    "haskell": "hs",
    "lua": "lua",
    "zig": "zig",
    "bash": "sh bash zsh",
    "sql": "sql",
    "dart": "dart",
    "proto": "proto",
    "markdown": "md mdx markdown",
    "rst": "rst",
    "text": "txt adoc org tex",
    "json": "json jsonc json5",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg conf properties editorconfig",
    "html": "html htm xhtml vue svelte astro erb eex heex leex j2 jinja hbs ejs twig",
    "css": "css scss sass less",
    "xml": "xml xsd xsl svg plist csproj props targets",
    "code": "r jl m mm pl pm clj cljs cljc erl hrl ml mli fs fsx fsi vb groovy gradle nim cr d v "
    "sv vhd asm s hsc lhs purs elm rkt scm lisp el vim fish ps1 psm1 bat cmd tf hcl nix bzl bazel "
    "cmake mk thrift graphql gql prisma sol wat ada adb pas f f90 f95 cob ipynb",
}
_BY_EXTENSION = {ext: name for name, exts in _EXTENSIONS.items() for ext in exts.split()}
_BY_NAME = {
    "makefile": "code",
    "dockerfile": "code",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "justfile": "code",
    "cmakelists.txt": "code",
    "readme": "text",
    "build": "code",
    "jenkinsfile": "code",
}
PROSE = frozenset({"markdown", "rst", "text"})
DATA = frozenset({"json", "yaml", "toml", "ini", "html", "css", "xml"})

_GRAMMARS = {
    "csharp": ("c_sharp", "language"),
    "php": ("php", "language_php"),
    "tsx": ("typescript", "language_tsx"),
    "typescript": ("typescript", "language_typescript"),
}
"""Package behind ``tree_sitter_``, and its function, where they are called otherwise."""


def language_of(path: str) -> str | None:
    """Return the language of a path by its name, or ``None`` if it is no text we know."""
    name = path.rpartition("/")[2].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    _, dot, extension = name.rpartition(".")
    return _BY_EXTENSION.get(extension) if dot else None


@lru_cache(maxsize=64)
def grammar_of(language: str) -> tuple[Parser, Query] | None:
    """Return parser and definition query of a language; ``None`` if it has none."""
    source = resources.files(__package__).joinpath("queries", f"{language}.scm")
    if not source.is_file():
        return None
    from tree_sitter import Parser, Query

    grammar = language_grammar(language)
    return Parser(grammar), Query(grammar, source.read_text("utf-8"))


@lru_cache(maxsize=64)
def language_grammar(language: str) -> Language:
    """Return the grammar of a language that has one."""
    from tree_sitter import Language

    package, function = _GRAMMARS.get(language, (language, "language"))
    module = import_module(f"tree_sitter_{package}")
    return Language(getattr(module, function)())
