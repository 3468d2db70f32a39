"""Fix misspelt Python attributes, imported names and keywords."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.python_source import (
    classes,
    members,
    module_of,
    parsed,
    replace_word,
    top_level,
)
from evercontext.agent.repair.fixers.spelling import nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure, inside

_OBJECT = re.compile(r"'([\w.]+)' object has no attribute '(\w+)'")
_TYPE = re.compile(r"type object '(\w+)' has no attribute '(\w+)'")
_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_MYPY = re.compile(r'"(?:type\[)?"?(\w+)"?\]?" has no attribute "(\w+)"')
_NAME = re.compile(r"cannot import name '(\w+)' from '([\w.]+)' \((.+)\)")
_KEYWORD = re.compile(r"(?<![\w.])([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
_PLAIN_MODULES = (
    "math",
    "json",
    "string",
    "random",
    "itertools",
    "functools",
    "collections",
    "re",
    "datetime",
    "statistics",
    "operator",
    "os",
    "os.path",
    "shutil",
    "textwrap",
    "hashlib",
    "base64",
    "time",
    "sys",
    "csv",
    "copy",
    "enum",
    "decimal",
)


async def misspelt_attribute(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the attribute that the class or module really has."""
    match = next(
        (
            m
            for pattern in (_OBJECT, _TYPE, _MODULE, _MYPY)
            if (m := pattern.search(failure.message))
        ),
        None,
    )
    if match is None or not failure.file or not failure.line:
        return []
    owner, wrong = match[1].rpartition(".")[2], match[2]
    if match.re is _MODULE:
        known = await _of_module(match[1], project)
    else:
        known = await _of_class(owner, project) | _of_builtin(owner)
    near = nearest(wrong, known)
    if near is None:
        return []
    reason = f"{owner} has no {wrong}, it has {near}"
    if not is_protected(failure.file):
        text = await project.read(failure.file) or ""
        return [Proposal("typo", reason, {failure.file: replace_word(text, wrong, near)})]
    return await _renamed(near, wrong, reason, project)


async def _of_module(name: str, project: ProjectView) -> set[str]:
    for path in await project.files():
        if path.endswith(".py") and module_of(path) == name:
            tree = parsed(await project.read(path))
            return top_level(tree) if tree else set()
    return set(dir(importlib.import_module(name))) if name in _PLAIN_MODULES else set()


async def _of_class(name: str, project: ProjectView) -> set[str]:
    names: set[str] = set()
    for path in await project.mentions(name, ".py"):
        tree = parsed(await project.read(path))
        for node in classes(tree, name) if tree else ():
            names |= members(node)
            for base in node.bases:
                if isinstance(base, ast.Name) and tree:
                    names |= {
                        m for parent_class in classes(tree, base.id) for m in members(parent_class)
                    }
    return names


def _of_builtin(name: str) -> set[str]:
    kind = getattr(builtins, name, None)
    return set(dir(kind)) if isinstance(kind, type) else set()


async def misspelt_import(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the name that a module really has; or, where a test asks for it, the name asked."""
    match = _NAME.search(failure.message)
    if match is None or "partially initialized" in failure.message or not failure.file:
        return []
    wrong, origin = match[1], inside(match[3], project.root)
    tree = parsed(await project.read(origin)) if origin else None
    if origin is None or tree is None:
        return []
    near = nearest(wrong, top_level(tree))
    if near is None:
        return []
    reason = f"{module_of(origin)} has no {wrong}, it has {near}"
    inward = await _renamed(near, wrong, reason, project)
    if is_protected(failure.file):
        return inward
    text = await project.read(failure.file) or ""
    outward = Proposal("typo", reason, {failure.file: replace_word(text, wrong, near)})
    # A name that several files ask for is the right one: its definition is what is misspelt.
    many = len(await project.mentions(wrong, ".py")) > len(await project.mentions(near, ".py"))
    return [*inward, outward] if many else [outward, *inward]


async def _renamed(old: str, new: str, reason: str, project: ProjectView) -> list[Proposal]:
    """Propose another name for something, in every file that is not protected."""
    contents: dict[str, str] = {}
    for path in await project.mentions(old, ".py"):
        text = await project.read(path) or ""
        if is_protected(path):
            return []  # a test knows it by its present name
        contents[path] = replace_word(text, old, new)
    return [Proposal("typo", f"{reason}; renamed", contents)] if contents else []


async def misspelt_keyword(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the keyword that a function takes; or the one that a test gives it."""
    match = _KEYWORD.search(failure.message)
    if match is None or not failure.file or not failure.line:
        return []
    name, wrong = match[1].split("."), match[2]
    owner = name[-2] if name[-1] == "__init__" and len(name) > 1 else name[-1]
    for path in await project.mentions(owner, ".py"):
        text = await project.read(path)
        tree = parsed(text)
        for function in _functions(tree, name[-1], owner) if tree and text else ():
            near = nearest(wrong, _arguments(function))
            if near:
                return await _keyword(failure, wrong, near, path, function, project)
    return []


def _functions(tree: ast.Module, name: str, owner: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name == owner:
            yield from (
                m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"
            )


def _arguments(function: ast.FunctionDef) -> list[str]:
    parameters = function.args
    return [argument.arg for argument in (*parameters.args, *parameters.kwonlyargs)]


async def _keyword(
    failure: Failure,
    wrong: str,
    near: str,
    path: str,
    function: ast.FunctionDef,
    project: ProjectView,
) -> list[Proposal]:
    reason = f"{function.name} takes {near}, not {wrong}"
    where = failure.file or ""
    if not is_protected(where):
        text = await project.read(where) or ""
        return [Proposal("typo", reason, {where: replace_word(text, wrong, near, failure.line)})]
    if is_protected(path):
        return []
    lines = (await project.read(path) or "").splitlines(keepends=True)
    first, last = function.lineno - 1, function.end_lineno or function.lineno
    body = replace_word("".join(lines[first:last]), near, wrong)
    return [Proposal("typo", reason, {path: "".join([*lines[:first], body, *lines[last:]])})]
