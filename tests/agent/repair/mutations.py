"""Seeded ways to break a project: each takes working files and returns broken ones."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Files = Mapping[str, str]
Mutate = Callable[[Files, random.Random], "dict[str, str] | None"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break something."""

    name: str
    language: str
    mutate: Mutate
    needs_model: bool = False
    lint: str | None = None
    """Instead of the tests, this command finds it."""


def misspelt(word: str, rng: random.Random) -> str:
    """A slip of the pen: two letters swapped, one lost, or one twice."""
    for _ in range(50):
        at = rng.randrange(1, len(word) - 1)
        made = rng.choice(
            [
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
            ]
        )
        if made != word:
            return made
    return word + word[-1]


def sources(files: Files, suffix: str) -> list[str]:
    """Files that are code and no test."""
    return [
        p
        for p in files
        if p.endswith(suffix) and not p.startswith(("tests/", "test/")) and "conftest" not in p
    ]


def _put(files: Files, path: str, text: str) -> dict[str, str]:
    return {**files, path: text}


def _lines(text: str, number: int, new: list[str], count: int = 1) -> str:
    lines = text.splitlines(keepends=True)
    lines[number - 1 : number - 1 + count] = new
    return "".join(lines)


def _python(files: Files, rng: random.Random) -> Iterator[tuple[str, str, ast.Module]]:
    paths = sources(files, ".py")
    rng.shuffle(paths)
    for path in paths:
        yield path, files[path], ast.parse(files[path])


def _at(text: str, node: ast.expr, old: str, new: str) -> str:
    line = text.splitlines(keepends=True)[node.lineno - 1].encode()
    end = node.end_col_offset or 0
    head, tail = line[: end - len(old.encode())].decode(), line[end:].decode()
    return _lines(text, node.lineno, [head + new + tail])


def drop_import(files: Files, rng: random.Random) -> dict[str, str] | None:
    """An import is forgotten."""
    for path, text, tree in _python(files, rng):
        nodes = [
            n
            for n in tree.body
            if isinstance(n, ast.Import | ast.ImportFrom)
            and n.lineno == n.end_lineno
            and getattr(n, "module", "") != "__future__"
            and not path.endswith("__init__.py")
        ]
        if nodes:
            node = rng.choice(nodes)
            gone = rng.choice(node.names)
            node.names = [alias for alias in node.names if alias is not gone]
            rest = [ast.unparse(node) + "\n"] if node.names else []
            return _put(files, path, _lines(text, node.lineno, rest))
    return None


def typo_name(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A variable or function is misspelt where it is used."""
    for path, text, tree in _python(files, rng):
        stored = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        stored |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        uses = [
            n
            for f in ast.walk(tree)
            if isinstance(f, ast.FunctionDef)
            for n in ast.walk(f)
            if isinstance(n, ast.Name)
            and isinstance(n.ctx, ast.Load)
            and n.id in stored
            and len(n.id) >= 5
        ]
        if uses:
            use = rng.choice(uses)
            return _put(files, path, _at(text, use, use.id, misspelt(use.id, rng)))
    return None


def typo_attribute(files: Files, rng: random.Random) -> dict[str, str] | None:
    """An attribute of ``self`` is misspelt where it is used."""
    for path, text, tree in _python(files, rng):
        uses = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.Attribute)
            and len(n.attr) >= 5
            and isinstance(n.ctx, ast.Load)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
        ]
        if uses:
            use = rng.choice(uses)
            return _put(files, path, _at(text, use, use.attr, misspelt(use.attr, rng)))
    return None


def typo_import(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A name is misspelt where it is imported from the project."""
    tops = {path.split("/")[0] for path in files}
    for path, text, tree in _python(files, rng):
        for node in tree.body:
            if (
                isinstance(node, ast.ImportFrom)
                and node.lineno == node.end_lineno
                and (node.level or (node.module or "").split(".")[0] in tops)
            ):
                name = rng.choice(node.names).name
                line = text.splitlines(keepends=True)[node.lineno - 1]
                head, tail = line.split(" import ", 1)
                made = tail.replace(name, misspelt(name, rng), 1)
                return _put(files, path, _lines(text, node.lineno, [f"{head} import {made}"]))
    return None


def typo_definition(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A function is misspelt where it is defined; everybody else asks for the right name."""
    for path, text, tree in _python(files, rng):
        found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and len(n.name) >= 5]
        if found:
            node = rng.choice(found)
            line = text.splitlines(keepends=True)[node.lineno - 1]
            made = line.replace(node.name, misspelt(node.name, rng), 1)
            return _put(files, path, _lines(text, node.lineno, [made]))
    return None


def wrong_module(files: Files, rng: random.Random) -> dict[str, str] | None:
    """An import of the project lacks its package, or names a module that is misspelt."""
    tops = {path.split("/")[0] for path in files}
    for path, text, tree in _python(files, rng):
        for node in tree.body:
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            inner = node.level or node.module.split(".")[0] in tops
            if not inner or node.module.split(".")[0] == "__future__":
                continue
            last = node.module.split(".")[-1]
            dots = "." * node.level + (node.module[: -len(last)])
            new = rng.choice([last, dots + misspelt(last, rng)])
            line = text.splitlines(keepends=True)[node.lineno - 1]
            made = re.sub(r"from \S+ import", f"from {new} import", line, count=1)
            return _put(files, path, _lines(text, node.lineno, [made]))
    return None


def missing_self(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A method is written without ``self``."""
    for path, text, tree in _python(files, rng):
        found = [
            m
            for n in ast.walk(tree)
            if isinstance(n, ast.ClassDef)
            for m in n.body
            if isinstance(m, ast.FunctionDef) and not m.decorator_list and m.name != "__init__"
        ]
        if found:
            node = rng.choice(found)
            line = text.splitlines(keepends=True)[node.lineno - 1]
            made = re.sub(r"\(self(?:, )?", "(", line, count=1)
            return _put(files, path, _lines(text, node.lineno, [made]))
    return None


def _syntax(pattern: str, new: str) -> Mutate:
    def mutate(files: Files, rng: random.Random) -> dict[str, str] | None:
        for path, text, _ in _python(files, rng):
            lines = text.splitlines(keepends=True)
            hits = [n for n, line in enumerate(lines, 1) if re.search(pattern, line)]
            rng.shuffle(hits)
            for number in hits:
                broken = _lines(text, number, [re.sub(pattern, new, lines[number - 1], count=1)])
                try:
                    ast.parse(broken)
                except SyntaxError:
                    return _put(files, path, broken)
        return None

    return mutate


def unused_import(files: Files, rng: random.Random) -> dict[str, str] | None:
    """Something is imported that nobody needs."""
    for path, text, tree in _python(files, rng):
        imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        if imports and not path.endswith("__init__.py"):
            at = imports[-1].end_lineno or 1
            extra = rng.choice(["import os\n", "from typing import Any\n", "import re as regex\n"])
            lines = text.splitlines(keepends=True)
            return _put(files, path, "".join([*lines[:at], extra, *lines[at:]]))
    return None


def bad_layout(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A line is laid out in a way that the formatter would not leave."""
    for path, text, _ in _python(files, rng):
        lines = text.splitlines(keepends=True)
        hits = [
            n
            for n, line in enumerate(lines, 1)
            if re.search(r"^\s+\w+ = |\w, \w", line) and '"' not in line
        ]
        if hits:
            number = rng.choice(hits)
            made = lines[number - 1].replace(" = ", "=", 1).replace(", ", " ,", 1)
            return _put(files, path, _lines(text, number, [made]))
    return None


def circular_import(files: Files, rng: random.Random) -> dict[str, str] | None:
    """Two modules import from each other when they load."""
    known = {path: path[:-3].replace("/", ".") for path in sources(files, ".py")}
    for path, text, tree in _python(files, rng):
        names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        for other, module in known.items():
            wanted = (
                rf"from (?:\.|{re.escape(module.rpartition('.')[0])}\.)"
                rf"{re.escape(module.rpartition('.')[2])} import"
            )
            if names and other != path and re.search(wanted, text):
                there = ast.parse(files[other])
                imports = [n for n in there.body if isinstance(n, ast.Import | ast.ImportFrom)]
                at = imports[-1].end_lineno if imports else None
                if at is None:
                    continue
                name = rng.choice(names)
                lines = files[other].splitlines(keepends=True)
                lines[at:at] = [f"from {known[path]} import {name}\n"]
                lines.append(f"\n\ndef back():\n    return {name}\n")
                return _put(files, other, "".join(lines))
    return None


def wrong_path(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A file is opened under a misspelt name."""
    for path, text, _ in _python(files, rng):
        match = re.search(r'"((?:\w+/)+)(\w+)(\.(?:json|csv))"', text)
        if match:
            folder, name = match[1], match[2]
            made = rng.choice(
                [f"{misspelt(folder[:-1], rng)}/{name}", f"{folder}{misspelt(name, rng)}"]
            )
            return _put(files, path, text.replace(folder + name, made, 1))
    return None


def typo_keyword(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A keyword is misspelt in a call."""
    for path, text, tree in _python(files, rng):
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        own |= {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
        found = [
            (call, word)
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id in own
            for word in call.keywords
            if word.arg and len(word.arg) >= 4
        ]
        if found:
            _, word = rng.choice(found)
            assert word.arg
            line = text.splitlines(keepends=True)[word.lineno - 1]
            made = line.replace(f"{word.arg}=", f"{misspelt(word.arg, rng)}=", 1)
            return _put(files, path, _lines(text, word.lineno, [made]))
    return None


def flip_operator(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A sum is a difference: only understanding helps."""
    hits = [
        (path, m)
        for suffix in (".py", ".js", ".rs")
        for path in sources(files, suffix)
        for m in re.finditer(r"(?<=\w) ([-+*]) (?=\w)", files[path])
    ]
    if not hits:
        return None
    path, match = rng.choice(hits)
    text = files[path]
    new = {"+": "-", "-": "+", "*": "-"}[match[1]]
    return _put(files, path, text[: match.start(1)] + new + text[match.end(1) :])


def drop_parameter(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A function no longer takes what it is given."""
    for path, text, tree in _python(files, rng):
        found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and len(n.args.args) > 1]
        if found:
            node = rng.choice(found)
            line = text.splitlines(keepends=True)[node.lineno - 1]
            made = re.sub(r", [^,()]+\)", ")", line, count=1)
            return _put(files, path, _lines(text, node.lineno, [made]))
    return None


def delete_module(files: Files, rng: random.Random) -> dict[str, str] | None:
    """A module is gone."""
    paths = [p for p in sources(files, ".py") if not p.endswith("__init__.py")]
    gone = rng.choice(paths) if len(paths) > 1 else None
    return {path: text for path, text in files.items() if path != gone} if gone else None


def _pattern(
    suffix: str, pattern: str, change: Callable[[re.Match[str], random.Random], str]
) -> Mutate:
    def mutate(files: Files, rng: random.Random) -> dict[str, str] | None:
        hits = [
            (path, m)
            for path in sources(files, suffix)
            for m in re.finditer(pattern, files[path], re.MULTILINE)
        ]
        if not hits:
            return None
        path, match = rng.choice(hits)
        text = files[path]
        made = text[: match.start()] + change(match, rng) + text[match.end() :]
        return _put(files, path, made)

    return mutate


def _slip(match: re.Match[str], rng: random.Random) -> str:
    return match[0].replace(match[1], misspelt(match[1], rng), 1)


def _without_one(match: re.Match[str], rng: random.Random) -> str:
    names = [name.strip() for name in match[1].split(",")]
    names.remove(rng.choice(names))
    return match[0].replace(match[1], f" {', '.join(names)} ") if names else ""


PYTHON = (
    Mutation("missing import", "python", drop_import),
    Mutation("typo in a name", "python", typo_name),
    Mutation("typo in an attribute", "python", typo_attribute),
    Mutation("typo in an import", "python", typo_import),
    Mutation("typo in a definition", "python", typo_definition),
    Mutation("wrong module", "python", wrong_module),
    Mutation("missing self", "python", missing_self),
    Mutation("syntax: colon", "python", _syntax(r":$", "")),
    Mutation("syntax: bracket", "python", _syntax(r"\)$|\):$", "")),
    Mutation("syntax: quote", "python", _syntax(r'"([,)\]]*)$', r"\1")),
    Mutation("lint: unused import", "python", unused_import, lint="ruff check ."),
    Mutation("layout", "python", bad_layout, lint="ruff format --check ."),
    Mutation("circular import", "python", circular_import),
    Mutation("wrong path", "python", wrong_path),
    Mutation("typo in a keyword", "python", typo_keyword),
)
JAVASCRIPT = (
    Mutation(
        "missing import",
        "javascript",
        _pattern(".js", r"^import \{([^}]+)\} from .*\n", _without_one),
    ),
    Mutation("wrong module", "javascript", _pattern(".js", r"(?<=from \"\./)(\w+)", _slip)),
    Mutation(
        "missing export",
        "javascript",
        _pattern(".js", r"^export (?=function|class)", lambda m, r: ""),
    ),
    Mutation(
        "typo in an export", "javascript", _pattern(".js", r"(?<=^export function )(\w{5,})", _slip)
    ),
    Mutation("syntax: bracket", "javascript", _pattern(".js", r"\)(?=;$)", lambda m, r: "")),
)
RUST = (
    Mutation("missing import", "rust", _pattern(".rs", r"^use .*\n", lambda m, r: "")),
    Mutation(
        "typo in a name",
        "rust",
        _pattern(
            ".rs",
            r"(?<=[\s(])(?<!fn )(with_interest|normalized|current|found|cleaned|"
            r"lowered|lengths|balance)(?=[,;.)(]|$)",
            _slip,
        ),
    ),
    Mutation(
        "syntax: semicolon", "rust", _pattern(".rs", r"(?<=[\w)]);(?=\n\s+\w)", lambda m, r: "")
    ),
    Mutation(
        "typo in a method",
        "rust",
        _pattern(".rs", r"(?<=\.)(copied|unwrap_or|to_lowercase|trim_matches|entry)(?=\()", _slip),
    ),
)
BY_FIXERS = (*PYTHON, *JAVASCRIPT, *RUST)
BY_MODEL = (
    Mutation("failing assert", "python", flip_operator, needs_model=True),
    Mutation("wrong signature", "python", drop_parameter, needs_model=True),
    Mutation("missing file", "python", delete_module, needs_model=True),
    Mutation("failing assert", "javascript", flip_operator, needs_model=True),
    Mutation("failing assert", "rust", flip_operator, needs_model=True),
    Mutation(
        "typo in a name",
        "javascript",
        _pattern(".js", r"(?<=[(\s])(?<!function )(?<!const )(\w{5,})(?=\()", _slip),
        needs_model=True,
    ),
    Mutation(
        "typo in a method",
        "javascript",
        _pattern(".js", r"(?<=\.)(push|shift|sort|map|reduce|insert|append)(?=\()", _slip),
        needs_model=True,
    ),
)
