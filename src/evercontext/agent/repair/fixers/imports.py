"""Place an import statement in a Python file."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from evercontext.agent.repair.fixers.python_source import parsed

_FUTURE, _STDLIB, _THIRD, _OWN, _RELATIVE = range(5)


@dataclass(frozen=True, slots=True, order=True)
class _Rank:
    """The order that isort and ruff give imports by default."""

    section: int
    is_from: bool
    module: str


def add_import(text: str, statement: str, own: frozenset[str] = frozenset()) -> str:
    """Return the source with an import in its place; ``own`` are the project's top packages."""
    tree = parsed(text)
    statement_node = parsed(statement)
    if tree is None or statement_node is None:
        return text
    node = statement_node.body[0]
    assert isinstance(node, ast.Import | ast.ImportFrom)
    block = _leading_imports(tree)
    joined = _joined(text, block, node)
    return joined if joined is not None else _inserted(text, tree, block, node, statement, own)


def _leading_imports(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def _joined(
    text: str,
    block: Sequence[ast.Import | ast.ImportFrom],
    statement_node: ast.Import | ast.ImportFrom,
) -> str | None:
    """Add the name to a one-line import from the same module, if there is one."""
    if not isinstance(statement_node, ast.ImportFrom):
        return None
    for node in block:
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module, node.level) == (statement_node.module, statement_node.level)
            and node.lineno == node.end_lineno
            and node.names[0].name != "*"
        ):
            lines = text.splitlines(keepends=True)
            line = lines[node.lineno - 1]
            if "#" in line or "(" in line or ";" in line:
                return None
            names = sorted(
                {ast.unparse(alias) for alias in (*node.names, *statement_node.names)}, key=_key
            )
            ending = line[len(line.rstrip()) :]
            dots = "." * node.level
            lines[node.lineno - 1] = (
                f"from {dots}{node.module or ''} import {', '.join(names)}{ending}"
            )
            return "".join(lines)
    return None


def _key(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as isort does."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


def _inserted(
    text: str,
    tree: ast.Module,
    block: Sequence[ast.Import | ast.ImportFrom],
    statement_node: ast.Import | ast.ImportFrom,
    statement: str,
    own: frozenset[str],
) -> str:
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    rank = _rank(statement_node, own)
    ranks = [(_rank(node, own), node) for node in block]
    earlier = [pair for pair in ranks if pair[0] < rank]
    if earlier:
        before, node = max(earlier, key=lambda pair: pair[0])
        at = node.end_lineno or node.lineno
        new = (
            [statement + ending] if before.section == rank.section else [ending, statement + ending]
        )
        if before.section != rank.section and at < len(lines) and lines[at].strip():
            new.append(ending)
    elif ranks:
        after, node = min(ranks, key=lambda pair: pair[0])
        at = node.lineno - 1
        new = [statement + ending] + ([] if after.section == rank.section else [ending])
    else:
        at, new = _after_docstring(tree, lines, statement + ending, ending)
    lines[at:at] = new
    return "".join(lines)


def _after_docstring(
    tree: ast.Module, lines: Sequence[str], statement: str, ending: str
) -> tuple[int, list[str]]:
    first = tree.body[0] if tree.body else None
    if first is not None and ast.get_docstring(tree) is not None:
        at = first.end_lineno or 1
        return at, [ending, statement] + ([ending] if at < len(lines) and lines[at].strip() else [])
    at = 0
    while at < len(lines) and lines[at].startswith("#"):
        at += 1
    gap = [ending] if at < len(lines) and lines[at].strip() else []
    definition = isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return at, [statement, *gap, *(gap if definition else [])]


def _rank(node: ast.Import | ast.ImportFrom, own: frozenset[str]) -> _Rank:
    is_from = isinstance(node, ast.ImportFrom)
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
    top = module.split(".")[0]
    if isinstance(node, ast.ImportFrom) and node.level:
        section = _RELATIVE
    elif top == "__future__":
        section = _FUTURE
    else:
        section = _OWN if top in own else _STDLIB if top in sys.stdlib_module_names else _THIRD
    return _Rank(section, is_from, module.lower())


def remove_import(text: str, name: str, line: int | None = None) -> str:
    """Return the source without the import that binds ``name`` (``os.path`` binds ``os``)."""
    tree = parsed(text)
    if tree is None:
        return text
    lines = text.splitlines(keepends=True)
    for node in reversed([n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]):
        last = node.end_lineno or node.lineno
        if line is not None and not node.lineno <= line <= last:
            continue
        remaining = [a for a in node.names if name not in (a.asname or a.name, _full(node, a))]
        if len(remaining) == len(node.names):
            continue
        lines[node.lineno - 1 : last] = _without(node, remaining, lines[node.lineno - 1], tree)
        break
    return "".join(lines)


def _full(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    origin = f"{'.' * node.level}{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
    tail = f" as {alias.asname}" if alias.asname else ""
    return f"{origin}{alias.name}{tail}"


def _without(
    node: ast.Import | ast.ImportFrom, remaining: list[ast.alias], line: str, tree: ast.Module
) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    ending = line[len(line.rstrip()) :]
    if remaining:
        node.names = remaining
        return [f"{indent}{ast.unparse(node)}{ending}"]
    alone = any(
        isinstance(body := getattr(parent, "body", None), list) and body == [node]
        for parent in ast.walk(tree)
        if parent is not tree
    )
    return [f"{indent}pass{ending}"] if alone else []
