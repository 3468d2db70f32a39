"""Fix Python imports that fail: a wrong path or level, a cycle, a missing package."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.python_source import module_of, parsed, replace_word, top_level
from evercontext.agent.repair.fixers.spelling import nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure

_NOWHERE = re.compile(r"No module named '([\w.]+)'|module named [\"']([\w.]+)[\"']")
_RELATIVE = re.compile(r"attempted relative import (?:beyond top-level|with no known parent)")
_CIRCLE = re.compile(r"cannot import name '(\w+)' from partially initialized module '([\w.]+)'")
_NAME = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_NO_PACKAGE = re.compile(r"INP001|implicit namespace package|Source file found twice")

Statement = ast.Import | ast.ImportFrom


async def wrong_module(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the module of the project, or of Python, that an import was meant for."""
    path, line = failure.file, failure.line
    text = await project.read(path) if path and path.endswith(".py") else None
    tree = parsed(text)
    if path is None or text is None or tree is None or is_protected(path):
        return []
    match = _NOWHERE.search(failure.message)
    lost = (match[1] or match[2]) if match else None
    if lost is None and not _RELATIVE.search(failure.message):
        return []
    proposals: list[Proposal] = []
    for node in (n for n in ast.walk(tree) if isinstance(n, Statement)):
        imported = _absolute(node, path)
        if (lost and imported == lost) or (not lost and node.lineno == line):
            for module in await _candidates(lost or imported, path, project):
                fixed = _pointed(text, node, module, path, tree)
                reason = f"there is no module {lost or imported}, there is {module}"
                proposals.append(Proposal("wrong import", reason, {path: fixed}))
    return proposals


def _absolute(node: Statement, path: str) -> str:
    if isinstance(node, ast.Import):
        return node.names[0].name
    package = module_of(path).split(".")
    base = package[: max(0, len(package) - node.level)] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


async def _candidates(lost: str, path: str, project: ProjectView) -> list[str]:
    """The modules that could have been meant, likeliest first."""
    known = {
        module_of(file): file
        for file in await project.files()
        if file.endswith(".py") and not is_protected(file)
    }
    known.pop(module_of(path), None)
    last = lost.split(".")[-1]
    same = [module for module in known if module.split(".")[-1] == last and module != lost]
    near = _near_here(same, path)
    if near:
        return near
    spelt = nearest(lost, known) or nearest(last, (m.split(".")[-1] for m in known))
    if spelt:
        return [m for m in known if spelt in (m, m.split(".")[-1])][:2]
    std = nearest(lost, sys.stdlib_module_names)
    return [std] if std else []


def _near_here(modules: Iterable[str], path: str) -> list[str]:
    """Modules of the same package first."""
    package = module_of(path).rpartition(".")[0]
    return sorted(modules, key=lambda module: (module.rpartition(".")[0] != package, module))[:3]


def _pointed(text: str, node: Statement, module: str, path: str, tree: ast.Module) -> str:
    """Return the source with one import statement leading to another module."""
    lines = text.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    shown = "".join(lines[first:last])
    if isinstance(node, ast.Import):
        old = node.names[0].name
        used = node.names[0].asname or old.split(".")[0]
        if "." not in old and "." in module and node.names[0].asname is None:
            head, _, tail = module.rpartition(".")
            new = shown.replace(f"import {old}", f"from {head} import {tail}", 1)
            return replace_word("".join([*lines[:first], new, *lines[last:]]), used, tail)
        new = re.sub(rf"\b{re.escape(old)}\b", module, shown, count=1)
    else:
        origin = f"from {_spelt(module, path, tree)} import"
        new = re.sub(r"from\s+[.\w]+\s+import", origin, shown, count=1)
    return "".join([*lines[:first], new, *lines[last:]])


def _spelt(module: str, path: str, tree: ast.Module) -> str:
    """A module as this file speaks of its neighbours: relative, if it does so elsewhere."""
    relative = any(isinstance(n, ast.ImportFrom) and n.level for n in tree.body)
    package = module_of(path).split(".")[:-1]
    target = module.split(".")
    if not relative or not package or target[0] != package[0]:
        return module
    shared = 0
    while shared < min(len(package), len(target) - 1) and package[shared] == target[shared]:
        shared += 1
    return "." * (len(package) - shared + 1) + ".".join(target[shared:])


async def moved_name(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the module that defines a name which was imported from another one."""
    match, path = _NAME.search(failure.message), failure.file
    text = await project.read(path) if path and not is_protected(path) else None
    tree = parsed(text)
    if match is None or path is None or text is None or tree is None:
        return []
    proposals = []
    for other in await project.mentions(match[1], ".py"):
        there = parsed(await project.read(other))
        if there is None or match[1] not in top_level(there) or is_protected(other):
            continue
        for node in tree.body:
            if (
                isinstance(node, ast.ImportFrom)
                and len(node.names) == 1
                and node.names[0].name == match[1]
                and other != path
            ):
                reason = f"{match[1]} is in {module_of(other)}, not in {match[2]}"
                fixed = _pointed(text, node, module_of(other), path, tree)
                proposals.append(Proposal("wrong import", reason, {path: fixed}))
    return proposals


async def circular_import(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to import where the name is used, if only functions use it."""
    match, path = _CIRCLE.search(failure.message), failure.file
    text = await project.read(path) if path and not is_protected(path) else None
    tree = parsed(text)
    if match is None or path is None or text is None or tree is None:
        return []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(a.name == match[1] for a in node.names):
            fixed = _moved_inside(text, tree, node)
            reason = f"{match[2]} and {module_of(path)} import each other"
            return [Proposal("circular import", reason, {path: fixed})] if fixed else []
    return []


def _moved_inside(text: str, tree: ast.Module, node: ast.ImportFrom) -> str | None:
    names = {alias.asname or alias.name for alias in node.names}
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names]
    users = [f for f in _functions(tree) if any(_within(f, use) for use in uses)]
    if not users or not all(any(_within(f, use) for f in users) for use in uses):
        return None
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if lines[0].endswith("\r\n") else "\n"
    for function in sorted(users, key=lambda f: -f.lineno):
        body = function.body
        start = body[1] if ast.get_docstring(function) and len(body) > 1 else body[0]
        if start.lineno == function.lineno:
            return None
        indent = " " * start.col_offset
        lines.insert(start.lineno - 1, f"{indent}{ast.unparse(node)}{ending}{ending}")
    last = node.end_lineno or node.lineno
    del lines[node.lineno - 1 : last]
    return "".join(lines)


def _functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods, without nested ones."""
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(node)
        elif isinstance(node, ast.ClassDef):
            functions += [
                m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
    return functions


def _within(function: ast.FunctionDef | ast.AsyncFunctionDef, use: ast.Name) -> bool:
    # Only the body: decorators, defaults and annotations are looked at when the module loads.
    return any(n is use for part in function.body for n in ast.walk(part))


async def missing_package(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose an empty ``__init__.py`` where a directory of modules has none."""
    description = f"{failure.code} {failure.message}"
    relative = _RELATIVE.search(failure.message)
    if not failure.file or not (_NO_PACKAGE.search(description) or relative):
        return []
    folder = PurePosixPath(failure.file).parent
    files = set(await project.files())
    place = str(folder / "__init__.py")
    if str(folder) in (".", "src", "lib") or place in files or is_protected(place):
        return []
    return [Proposal("missing package", f"{folder} has no __init__.py", {place: ""})]
