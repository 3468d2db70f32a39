"""Texts that the source writes, read from the source itself.

A text may stand where it is used, or in a name that is assigned in the same function or module, or
in what a function of the module returns. Places in it are named after what fills them.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

Text = tuple[int, str]
"""A line's number, and a text with ``{places}``."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PLACE = re.compile(r"\{\w+\}")
_OF_VALUES = {"get", "dumps", "isoformat", "strftime", "partition", "split", "removeprefix"}
"""Calls whose arguments are no texts for a person."""


def name_of(call: ast.Call) -> str:
    """Return the name of what is called, without what it belongs to."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def has_words(text: str) -> bool:
    """Tell whether a text has words of its own beside its places."""
    return re.search("[A-Za-z]{2}", _PLACE.sub("", text)) is not None


def is_sentence(text: str) -> bool:
    """Tell whether a text is one by itself: no name, no command, no part of another text."""
    own = _PLACE.sub("", text)
    whole = text == text.strip() and text[:1] not in ",;:("
    command = text.startswith(("evercontext ", "--root ", "https://"))
    return whole and not command and re.search("[A-Za-z]{2}.* .*[A-Za-z]{2}", own) is not None


def sample(text: str) -> str:
    """Return the text with something in its places."""
    return _PLACE.sub("x7", text)


class Source:
    """One module of the source."""

    def __init__(self, path: Path, *, ending: frozenset[str] = frozenset()) -> None:
        """``ending`` names calls whose arguments are left alone, such as the translator."""
        self.path = path
        self.tree = ast.parse(path.read_text("utf-8"))
        self._ending = ending
        self._scopes: dict[ast.AST, ast.AST | None] = {}
        self._values: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        self._functions: dict[str, _Function] = {}
        self._enter(self.tree, None)

    def calls(self, names: set[str]) -> Iterator[ast.Call]:
        """Yield every call of one of these names."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and name_of(node) in names:
                yield node

    def texts(self, node: ast.AST, *, seen: frozenset[ast.AST] = frozenset()) -> Iterator[Text]:
        """Yield every text that an expression may have."""
        if node in seen:
            return
        seen |= {node}
        for part in self._parts(node, seen):
            if isinstance(part, str):
                yield getattr(node, "lineno", 0), part
            else:
                yield from self.texts(part, seen=seen)

    def _parts(self, node: ast.AST, seen: frozenset[ast.AST]) -> Iterator[ast.AST | str]:
        """Yield the texts of one expression, and the expressions that may be it."""
        match node:
            case ast.Constant(value=str() as text):
                yield text
            case ast.JoinedStr(values=values):
                yield from self._templates(values, seen)
                yield from (v.value for v in values if isinstance(v, ast.FormattedValue))
            case ast.Call():
                yield from self._called(node)
            case ast.Name(id=name):
                here = self._values.get((self._scopes.get(node), name))
                yield from here or self._values.get((None, name), [])
            case ast.BinOp(left=left, right=right):
                yield from (left, right)
            case ast.IfExp(body=body, orelse=otherwise):
                yield from (body, otherwise)
            case ast.BoolOp(values=several) | ast.Tuple(elts=several) | ast.List(elts=several):
                yield from several
            case ast.Starred(value=value) | ast.Await(value=value) | ast.NamedExpr(value=value):
                yield value
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
                yield value

    def _templates(self, values: list[ast.expr], seen: frozenset[ast.AST]) -> Iterator[str]:
        """Yield a formatted string, its places named, with and without words that may lack."""
        used: set[str] = set()
        choices = []
        for value in values:
            if isinstance(value, ast.Constant):
                choices.append([str(value.value)])
                continue
            inner = value.value if isinstance(value, ast.FormattedValue) else value
            forms = [text for _, text in self.texts(inner, seen=seen)]
            phrases = forms and all(" " in form and not _PLACE.search(form) for form in forms)
            place = _named(value, used)
            missing = "" in forms and any(" " in form for form in forms)
            choices.append(forms if missing or phrases else [place])
        yield from ("".join(parts) for parts in itertools.product(*choices))

    def _called(self, node: ast.Call) -> Iterator[ast.AST]:
        name = name_of(node)
        if name in self._ending or name in _OF_VALUES:
            return
        if name == "paint":
            yield node.args[0]
        elif isinstance(node.func, ast.Name) and name in self._functions:
            for inner in ast.walk(self._functions[name]):
                if isinstance(inner, ast.Return | ast.Yield) and inner.value:
                    yield inner.value
        else:
            yield from node.args

    def _enter(self, node: ast.AST, scope: ast.AST | None) -> None:
        """Note in which function each name stands, and what is assigned to it there."""
        for child in ast.iter_child_nodes(node):
            inner = child if isinstance(child, _Function) else scope
            if isinstance(child, _Function):
                self._functions[child.name] = child
            self._scopes[child] = inner
            self._enter(child, inner)
            for target, value in _assignments(child):
                if isinstance(target, ast.Name):
                    self._values.setdefault((inner, target.id), []).append(value)


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            several = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            pairs = [(target, one) for one in several]
        case _:
            return
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from zip(target.elts, value.elts, strict=False)
        else:
            yield target, value


def _named(value: ast.expr, used: set[str]) -> str:
    """Return a place that is named after what fills it."""
    expression = ast.unparse(value).split("!")[0].split("[")[0]
    words = [word.strip("_") for word in re.findall(r"[A-Za-z_]\w*", expression)]
    name = next((word for word in reversed(words) if len(word) > 1), "value")
    while name in used:
        name += "2"
    used.add(name)
    return f"{{{name}}}"
