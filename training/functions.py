"""Cut source files into (comment, definition) pairs."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_CODE = 1200
LONGEST_DOC = 320


@dataclass(frozen=True, slots=True)
class Pair:
    """One comment and what it describes."""

    doc: str
    code: str
    kind: str


_C_LIKE = re.compile(
    r"^[ \t]*(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|"
    r"export|default|inline|const|constexpr|extern|unsafe|open|suspend|readonly|func|fun|function|"
    r"def|fn|pub(?:\([a-z]+\))?|class|struct|enum|interface|trait|impl|type|object|protocol|"
    r"extension|namespace|module|template|declare|let|var|data|sealed|case|mutating|@\w+)\b|"
    r"[A-Za-z_][\w:<>,\*&\[\]\. ]*?\s[\*&]*[A-Za-z_~][\w:]*\s*\(|[A-Za-z_$][\w$]*\s*\([^;]*\)\s*\{|"
    r"[\w.$]+(?:\.prototype)?\.\w+\s*=\s*(?:async\s+)?function|[A-Z_]\w*\s*\()"
)
_TAG = re.compile(
    r"^\s*[@\\](param|return|throws|example|see|since|author|deprecated|type|private|"
    r"internal|template|property|typedef|returns|var|api|method|memberof|class|public"
    r"|static|ingroup|brief)\b",
    re.I,
)
_NOISE = re.compile(
    r"copyright|spdx|licen[cs]e[ds]? under|permission is hereby|eslint|tslint|prettier|istanbul|"
    r"code generated|do not edit|todo|fixme|nolint|noinspection|rubocop|@ts-|c8 ignore|go:build|"
    r"!/usr|vim:|-\*-|pragma|pylint|noqa|@flow|sourcemapping|====|----|\*\*\*\*|####",
    re.I,
)
_LINE_COMMENT = {
    "go": "//",
    "rs": "///",
    "rb": "#",
    "lua": "--",
    "hs": "--",
    "swift": "///",
    "cs": "///",
    "js": "//",
    "ts": "//",
    "c": "//",
    "h": "//",
    "cc": "//",
    "cpp": "//",
    "hpp": "//",
    "sh": "#",
    "java": "//",
    "kt": "//",
    "php": "//",
    "scala": "//",
    "zig": "///",
    "mjs": "//",
    "tsx": "//",
    "jsx": "//",
    "ex": "#",
    "dart": "///",
    "cjs": "//",
    "cxx": "//",
    "m": "//",
    "mm": "//",
}
LANGUAGES = frozenset(_LINE_COMMENT) | {"py", "pyi"}


def clean_doc(doc: str, name: str = "") -> str | None:
    """Return the first paragraph of a comment as one line, or None if it says nothing."""
    paragraph: list[str] = []
    for line in doc.strip().splitlines():
        line = line.strip()
        if _TAG.match(line) and not re.match(r"[@\\]brief", line):
            break
        if not line and paragraph:
            break
        if line.startswith((":", ">>>", "```", "Args:", "Parameters", "Returns:")):
            break
        paragraph.append(re.sub(r"^[@\\]brief\s+", "", line))
    text = re.sub(r"<[^>]{1,40}>|`{1,2}|\*\*|\{@\w+\s+([^}]*)\}", r"\1", " ".join(paragraph))
    text = re.sub(r":\w+:(?=\S)", "", re.sub(r"\s+", " ", text)).strip()
    first, _, rest = text.partition(" ")
    if name and first.strip("().,:`").lower() == name.lower():
        text = rest
    if _NOISE.search(text) or len(text.split()) < 3 or len(text) < 15:
        return None
    if sum(c.isascii() for c in text) < 0.95 * len(text) or text.count(" ") < len(text) / 25:
        return None
    return text[:LONGEST_DOC]


def python_pairs(source: str) -> Iterator[Pair]:
    """Yield the documented functions and classes of a Python file, docstring taken out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            pair = _python_pair(node, lines)
            if pair is not None:
                yield pair


def _python_pair(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: list[str]
) -> Pair | None:
    first = node.body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
        return None
    if not isinstance(first.value.value, str):
        return None
    doc = clean_doc(textwrap.dedent(first.value.value))
    if doc is None:
        return None
    if isinstance(node, ast.ClassDef):
        return Pair(doc, _python_outline(node, lines), "class")
    if len(node.body) == 1 and node.end_lineno == first.end_lineno:
        return None
    head = lines[node.lineno - 1 : first.lineno - 1]
    body = lines[first.end_lineno or first.lineno : node.end_lineno]
    code = textwrap.dedent("\n".join([*head, *body]))
    return Pair(doc, code[:LONGEST_CODE], "function") if len(code) > 40 else None


def _python_outline(node: ast.ClassDef, lines: list[str]) -> str:
    parts = [lines[node.lineno - 1].strip()]
    for child in node.body:
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts.append("    " + lines[child.lineno - 1].strip())
        elif isinstance(child, (ast.Assign, ast.AnnAssign)):
            parts.append("    " + lines[child.lineno - 1].strip()[:100])
    return "\n".join(parts)[:LONGEST_CODE]


def _comment_above(lines: list[str], at: int, mark: str) -> tuple[list[str], int]:
    """Return the comment that ends just above line ``at`` and the line where it starts."""
    end = at
    while end and lines[end - 1].lstrip().startswith(("@", "#[", "template", "[", "export type =")):
        end -= 1
    above = lines[end - 1].strip() if end else ""
    if above.endswith("*/"):
        start = end - 1
        while start >= 0 and "/*" not in lines[start] and end - start < 60:
            start -= 1
        text = "\n".join(lines[max(start, 0) : end])
        text = re.sub(r"^\s*/\*+!?|\*+/\s*$", "", text.strip())
        return [re.sub(r"^\s*\*+ ?", "", line) for line in text.splitlines()], start
    if mark and above.startswith(mark):
        start = end
        while start and lines[start - 1].strip().startswith(mark):
            start -= 1
        strip = re.compile(r"^\s*(///?!?<?|#+|---?\s*\|?)\s?")
        return [strip.sub("", line) for line in lines[start:end]], start
    return [], at


def _block(lines: list[str], at: int) -> str:
    """Return a definition: until the next line that is no deeper than its head and ends it."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    taken = [lines[at]]
    for line in lines[at + 1 : at + 60]:
        bare = line.strip()
        if not bare:
            taken.append(line)
            continue
        depth = len(line) - len(line.lstrip())
        if depth < indent or (depth == indent and not re.match(r"[{}\])]|end\b|else|\|", bare)):
            break
        taken.append(line)
        if depth == indent and re.match(r"(\}|end\b|\);|\};)", bare):
            break
    return textwrap.dedent("\n".join(taken)).strip()


_NAME = re.compile(
    r"(?:func|fun|function|def|fn|class|struct|enum|interface|trait|type|object|protocol|module)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*)|([A-Za-z_$][\w$]*)\s*[(=]"
)
_RUBY = re.compile(r"^\s*(def|class|module)\s")
_LUA = re.compile(r"^\s*(local\s+)?(function\b|[\w.:]+\s*=\s*function)")
_HASKELL = re.compile(r"^[a-z_][\w']*\s*::|^(data|newtype|class|type|instance)\s")
_SHELL = re.compile(r"^\s*(function\s+)?[\w:-]+\s*\(\)\s*\{?|^\s*function\s")
_ELIXIR = re.compile(r"^\s*(def|defp|defmacro|defmodule)\s")
_HEADS = {"rb": _RUBY, "lua": _LUA, "hs": _HASKELL, "sh": _SHELL, "ex": _ELIXIR}


_NO_HEAD = (
    "*",
    "//",
    "return",
    "else",
    "if ",
    "if(",
    "for",
    "while",
    "switch",
    "catch",
    "case",
    "}",
)


def other_pairs(source: str, language: str) -> Iterator[Pair]:
    """Yield the commented definitions of a file in a language with comments above them."""
    lines = source.splitlines()
    mark = _LINE_COMMENT[language]
    head = _HEADS.get(language, _C_LIKE)
    for at in range(1, len(lines)):
        above = lines[at - 1].lstrip()
        if not above or above[0] not in "*/#-@[t" or not lines[at].strip():
            continue
        if not head.match(lines[at]) or lines[at].lstrip().startswith(_NO_HEAD):
            continue
        comment, _ = _comment_above(lines, at, mark)
        if not comment:
            continue
        named = _NAME.search(lines[at])
        name = (named[1] or named[2]) if named else ""
        doc = clean_doc("\n".join(comment), name)
        code = _block(lines, at) if doc else ""
        if doc and len(code) > 40:
            yield Pair(doc, code[:LONGEST_CODE], "function")


def pairs_of(path: str, source: str) -> list[Pair]:
    """Return the pairs of one file, by the ending of its name."""
    language = path.rpartition(".")[2].lower()
    if len(source) > 600_000 or "\x00" in source[:1000]:
        return []
    if language in ("py", "pyi"):
        return list(python_pairs(source))
    if max(map(len, source.split("\n", 40)[:40]), default=0) > 2000:
        return []  # minified
    return list(other_pairs(source, language)) if language in _LINE_COMMENT else []
