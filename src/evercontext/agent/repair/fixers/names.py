"""Fix undefined Python names: a missing import, or a misspelling."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections import Counter

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.imports import add_import
from evercontext.agent.repair.fixers.python_source import (
    bound,
    imports_of,
    module_of,
    parsed,
    replace_word,
    top_level,
)
from evercontext.agent.repair.fixers.spelling import nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure

_UNDEFINED = re.compile(
    r"name '(\w+)' is not defined|[Uu]ndefined name [`'](\w+)[`']|Name \"(\w+)\" is not defined"
)
_KNOWN = {
    "collections": "Counter OrderedDict defaultdict deque namedtuple ChainMap",
    "collections.abc": "Awaitable Callable Iterable Iterator Mapping MutableMapping Sequence",
    "contextlib": "asynccontextmanager contextmanager suppress ExitStack AsyncExitStack",
    "dataclasses": "dataclass asdict astuple field",
    "datetime": "timedelta timezone UTC",
    "decimal": "Decimal",
    "enum": "Enum IntEnum StrEnum Flag auto",
    "fractions": "Fraction",
    "functools": "partial reduce wraps lru_cache cache cached_property singledispatch",
    "itertools": "chain islice groupby product permutations combinations accumulate takewhile",
    "operator": "itemgetter attrgetter",
    "os.path": "dirname basename",
    "pathlib": "Path PurePath PurePosixPath",
    "tempfile": "TemporaryDirectory NamedTemporaryFile",
    "textwrap": "dedent",
    "threading": "Thread",
    "types": "SimpleNamespace MappingProxyType",
    "typing": "Any ClassVar Final Generic Literal NamedTuple Optional Protocol TypeVar Union "
    "TYPE_CHECKING TypedDict cast overload NoReturn",
    "urllib.parse": "urlparse urlencode quote unquote urljoin",
    "uuid": "uuid4 UUID",
    "math": "sqrt ceil floor",
    "json": "JSONDecodeError",
    "copy": "deepcopy",
    "time": "perf_counter",
}
_ORIGIN = {name: module for module, names in _KNOWN.items() for name in names.split()}
_ALIASES = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "dt": "import datetime as dt",
    "tp": "import typing as tp",
}


def undefined(failure: Failure) -> str | None:
    """Return the name that a failure reports as undefined."""
    match = _UNDEFINED.search(failure.message)
    return next((group for group in match.groups() if group), None) if match else None


async def missing_import(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to import an undefined name from where the project, or Python, has it."""
    name, path = undefined(failure), failure.file
    if name is None or path is None or not path.endswith(".py") or name == "self":
        return []
    text = await project.read(path)
    tree = parsed(text)
    if text is None or tree is None or name in top_level(tree):
        return []
    own = frozenset(module_of(file).split(".")[0] for file in await project.files())
    return [
        Proposal(
            "missing import",
            f"{name} is used and not imported: {statement}",
            {path: add_import(text, statement, own)},
        )
        for statement in await _statements(name, path, project)
    ]


async def _statements(name: str, path: str, project: ProjectView) -> list[str]:
    """The statements that would import a name, likeliest first."""
    used: Counter[str] = Counter()
    defined: list[str] = []
    for other in await project.mentions(name, ".py"):
        tree = parsed(await project.read(other))
        if tree is None or other == path:
            continue
        used.update(imports_of(tree, name, module_of(other)))
        if name in top_level(tree) and not is_protected(other):
            defined.append(f"from {module_of(other)} import {name}")
    here = module_of(path)
    ours = [statement for statement, _ in used.most_common()]
    statements = [*(statement for statement in ours if statement in defined), *defined, *ours]
    statements += [f"import {name}"] if name in sys.stdlib_module_names else []
    statements += [f"from {_ORIGIN[name]} import {name}"] if name in _ORIGIN else []
    statements += [_ALIASES[name]] if name in _ALIASES else []
    return [
        statement
        for statement in dict.fromkeys(statements)
        if not statement.startswith(f"from {here} import")
    ]


async def misspelt_name(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the one name in the file that an undefined name is nearest to."""
    name, path = undefined(failure), failure.file
    text = await project.read(path) if path and path.endswith(".py") else None
    tree = parsed(text)
    if name is None or path is None or text is None or tree is None:
        return []
    near = nearest(name, (bound(tree) | set(dir(builtins))) - {name}) or _suggested(failure.message)
    if near is None:
        return []
    fixed = replace_word(text, name, near)
    return [Proposal("typo", f"{name} is nowhere defined, {near} is", {path: fixed})]


def _suggested(message: str) -> str | None:
    match = re.search(r"[Dd]id you mean:? ['\"`](\w+)['\"`]", message)
    return match[1] if match else None


async def missing_self(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose ``self`` for a method that was written without it."""
    path, line = failure.file, failure.line
    if undefined(failure) == "self" and path and line:
        tree = parsed(await project.read(path))
        return await _with_self(path, _enclosing(tree, line), project)
    match = re.search(
        r"(\w+)\.(\w+)\(\) takes \d+ positional arguments? but \d+ w", failure.message
    )
    if match is None:
        return []
    proposals: list[Proposal] = []
    for other in await project.mentions(match[2], ".py"):
        tree = parsed(await project.read(other))
        if tree is not None and not is_protected(other):
            proposals += await _with_self(other, _method(tree, match[1], match[2]), project)
    return proposals


def _enclosing(tree: ast.Module | None, line: int) -> ast.FunctionDef | None:
    methods = (
        [
            m
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for m in node.body
            if isinstance(m, ast.FunctionDef)
        ]
        if tree
        else []
    )
    return next((m for m in methods if m.lineno <= line <= (m.end_lineno or 0)), None)


def _method(tree: ast.Module, owner: str, name: str) -> ast.FunctionDef | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == owner:
            return next(
                (m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == name), None
            )
    return None


async def _with_self(
    path: str, method: ast.FunctionDef | None, project: ProjectView
) -> list[Proposal]:
    if method is None or method.decorator_list:
        return []
    first = [*method.args.posonlyargs, *method.args.args][:1]
    if first and first[0].arg in ("self", "cls", "mcs"):
        return []
    text = await project.read(path) or ""
    lines = text.splitlines(keepends=True)
    at = lines[method.lineno - 1]
    tail = ", " if _has_arguments(method) else ""
    fixed = re.sub(r"(def\s+\w+\s*\()\s*", rf"\1self{tail}", at, count=1)
    lines[method.lineno - 1] = fixed
    reason = f"{method.name} is a method and takes no self"
    return [Proposal("missing self", reason, {path: "".join(lines)})] if fixed != at else []


def _has_arguments(method: ast.FunctionDef) -> bool:
    arguments = method.args
    return bool(
        arguments.posonlyargs
        or arguments.args
        or arguments.vararg
        or arguments.kwonlyargs
        or arguments.kwarg
    )
