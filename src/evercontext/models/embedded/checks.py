"""What the tiny model wrote is parsed before anybody accepts it."""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Sequence

from evercontext.models.embedded.assignment import Assignment

_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")


def problem_with(content: str, kind: str, task: Assignment) -> str | None:
    """Return why ``content`` cannot be the answer to ``task``, or ``None``."""
    if not content.strip():
        return "it is empty"
    if kind == "python":
        return _python_problem(content, task)
    if _repeats(content, task):
        return "it only repeats the task"
    if kind == "json":
        return _json_problem(content)
    return None


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


def _repeats(text: str, task: Assignment) -> bool:
    return _plain(text) == _plain(task.english)


def _json_problem(content: str) -> str | None:
    try:
        found = json.loads(content)
    except ValueError as error:
        return f"it is not JSON ({error})"
    return None if found else "it holds nothing"


def _python_problem(content: str, task: Assignment) -> str | None:
    try:
        tree = ast.parse(content)
    except SyntaxError as error:
        return f"it is not Python ({error.msg})"
    unknown = _unknown_names(tree)
    if unknown:
        return f"it uses {unknown[0]}, which is defined nowhere"
    defined = {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    if task.wants_function:
        return _missing_definition(defined, task)
    if all(isinstance(node, (*_DEFINITIONS, ast.Import, ast.Assign)) for node in tree.body):
        return "running it would do nothing"
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    if any(_repeats(str(value), task) for value in constants):
        return "it only repeats the task"
    return None if _comes_from(constants, task) else "it has nothing to do with the task"


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _missing_definition(defined: set[str], task: Assignment) -> str | None:
    wanted = set(_CALLED.findall(task.english)) - set(dir(builtins))
    if not defined:
        return "it defines no function"
    missing = sorted(wanted - defined)
    return f"it does not define {missing[0]}" if missing else None


def _unknown_names(tree: ast.Module) -> list[str]:
    known = set(dir(builtins)) | {"__file__", "__name__"}
    used: dict[str, None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used[name] = None
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                known.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                known.add(name)
            case ast.alias(name=name, asname=other):
                known.add(other or name.split(".")[0])
    return [name for name in used if name not in known]


def _comes_from(constants: Sequence[object], task: Assignment) -> bool:
    """True if some text or number of the program is in the task."""
    said = _plain(task.english)
    plain = (_plain(str(value)) for value in constants)
    return any(value and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said) for value in plain)
