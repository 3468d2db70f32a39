"""Parse Python source for fixers: names, definitions, imports, exact replacements."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath


def parsed(text: str | None) -> ast.Module | None:
    """Return the tree of a source, or ``None`` if it has none."""
    try:
        return ast.parse(text) if text is not None else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def module_of(path: str) -> str:
    """``src/shop/cart.py`` → ``shop.cart``: how the project imports this file."""
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts and parts[0] in ("src", "lib") and len(parts) > 1:
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def top_level(tree: ast.Module) -> set[str]:
    """Return the names that a module defines itself, without its imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {
                n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)
            }
    return names


def bound(tree: ast.Module) -> set[str]:
    """Return every name that is bound anywhere in a module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.arg():
                names.add(node.arg)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.alias():
                names.add((node.asname or node.name).split(".")[0])
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
    return names


def imports_of(tree: ast.Module, name: str, module: str) -> Iterator[str]:
    """Yield the statements by which a module imports ``name``, made absolute."""
    package = module.split(".")[:-1]
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if (alias.asname or alias.name) != name:
                continue
            tail = f" as {alias.asname}" if alias.asname else ""
            if isinstance(node, ast.Import):
                yield f"import {alias.name}{tail}"
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*base, *([node.module] if node.module else [])])
                if origin:
                    yield f"from {origin} import {alias.name}{tail}"


def classes(tree: ast.Module, name: str) -> Iterator[ast.ClassDef]:
    """Yield the classes of a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield node


def members(node: ast.ClassDef) -> set[str]:
    """Return the attributes that a class gives itself."""
    names: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(inner.name)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            names.add(inner.attr)
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            names.add(inner.target.id)
        elif isinstance(inner, ast.Assign):
            names |= {target.id for target in inner.targets if isinstance(target, ast.Name)}
    return names


def replace_word(text: str, old: str, new: str, line: int | None = None) -> str:
    """Replace a name wherever it is a name, not inside strings or comments; on one line if given.

    A file that cannot be tokenised is taken as it stands, word by word.
    """
    lines = text.splitlines(keepends=True)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return _replace_bare(lines, old, new, line)
    hits = [t for t in tokens if t.type == tokenize.NAME and t.string == old]
    for hit in reversed([t for t in hits if line is None or t.start[0] == line]):
        row, column = hit.start
        at = lines[row - 1]
        lines[row - 1] = at[:column] + new + at[column + len(old) :]
    return "".join(lines)


def _replace_bare(lines: list[str], old: str, new: str, line: int | None) -> str:
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    lines = [
        word.sub(new, text) if line in (None, number) else text
        for number, text in enumerate(lines, 1)
    ]
    return "".join(lines)
