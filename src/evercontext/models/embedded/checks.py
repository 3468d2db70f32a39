"""What the tiny model wrote is parsed before anybody accepts it."""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Mapping, Sequence

from evercontext.models.embedded.assignment import Assignment


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
    pairs: list[tuple[str, object]] = []

    def note(found: list[tuple[str, object]]) -> dict[str, object]:
        pairs.extend(found)
        return dict(found)

    try:
        json.loads(content, object_pairs_hook=note)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if len(pairs) != len(dict(pairs)):
        return "it gives one key twice"
    return None if pairs else "it holds nothing"


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
    wrong = _number_problem(tree, task)
    if wrong:
        return wrong
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    if any(_repeats(str(value), task) for value in constants):
        return "it only repeats the task"
    return None if _comes_from(constants, task) else "it has nothing to do with the task"


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


_OPERATORS: Mapping[str, type[ast.operator]] = {
    "sum|total|plus": ast.Add,
    "difference|minus": ast.Sub,
    "product|times|multiplied": ast.Mult,
    "quotient|divided": ast.Div,
}


def _number_problem(tree: ast.Module, task: Assignment) -> str | None:
    """A range must end where the task says, and a result must be made of what it says."""
    if task.numbers == "range":
        low, high = map(int, re.findall(r"(\d+) to (\d+)", task.english)[-1])
        ranges = [_range(node) for node in ast.walk(tree)]
        return None if range(low, high + 1) in ranges else f"it does not count to {high}"
    if task.numbers == "result":
        used = {type(node.op) for node in ast.walk(tree) if isinstance(node, ast.BinOp)}
        for words, operator in _OPERATORS.items():
            asked = any(re.fullmatch(words, word, re.I) for word in task.words)
            if asked and operator not in used:
                return f"it has no {operator.__name__.lower()} in it"
    return None


def _range(node: ast.AST) -> range | None:
    """Return the range that a call with plain numbers and sums stands for."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"):
        return None
    bounds = [_whole(argument) for argument in node.args]
    numbers = [bound for bound in bounds if bound is not None]
    return range(*numbers) if 0 < len(numbers) == len(bounds) <= 2 else None


def _whole(node: ast.AST) -> int | None:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _whole(left), _whole(right)
            return None if first is None or second is None else first + second
    return None


def _missing_definition(defined: set[str], task: Assignment) -> str | None:
    if not defined:
        return "it defines no function"
    if re.search(r"\bclass\b", task.english, re.I):
        return "it defines no class"
    if task.function is not None and task.function not in defined:
        return f"it does not define {task.function}"
    return None


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
