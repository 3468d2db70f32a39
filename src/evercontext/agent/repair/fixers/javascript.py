"""Propose JavaScript and TypeScript imports, exports, module paths and closing brackets."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.spelling import nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure, inside

SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_UNDEFINED = re.compile(r"(?:ReferenceError: )?(?<![\w$])([A-Za-z_$][\w$]*) is not defined")
_NO_EXPORT = re.compile(r"module '([^']+)' does not provide an export named '([\w$]+)'")
_NO_MODULE = re.compile(r"Cannot find module '([^']+)'")
_EXPORTED = re.compile(
    r"^export\s+(?:default\s+)?(?:async\s+)?(?:function\*?|class|const|let|var)\s+([\w$]+)"
    r"|^(?:module\.)?exports\.([\w$]+)\s*=",
    re.MULTILINE,
)
_LISTED = re.compile(r"(?:^export|module\.exports\s*=)\s*\{([^}]*)\}", re.MULTILINE)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_BLANKED = re.compile(r"([\"'`])(?:\\.|(?!\1).)*\1|//.*|/\*.*?\*/")
_HEAD = re.compile(r"import\b|(?:const|let|var) .*\brequire\(|[\"']use strict")
_BUILTIN = {
    "node:fs": "readFileSync writeFileSync existsSync mkdirSync readdirSync statSync rmSync",
    "node:path": "join resolve dirname basename extname relative",
    "node:url": "fileURLToPath pathToFileURL",
    "node:assert": "deepEqual deepStrictEqual strictEqual",
    "node:crypto": "createHash randomUUID randomBytes",
    "node:child_process": "spawn spawnSync execFile execSync",
    "node:events": "EventEmitter once",
    "node:util": "promisify inspect",
    "node:os": "tmpdir homedir cpus",
}
_ORIGIN = {name: module for module, names in _BUILTIN.items() for name in names.split()}
_MODULES = (
    "fs",
    "path",
    "os",
    "url",
    "util",
    "crypto",
    "assert",
    "events",
    "http",
    "https",
    "zlib",
)


def _ours(failure: Failure) -> str | None:
    path = failure.file
    return path if path and path.endswith(SUFFIXES) and not is_protected(path) else None


async def missing_import(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to import an undefined name from the project or from node."""
    match, path = _UNDEFINED.search(failure.message), _ours(failure)
    text = await project.read(path) if path else None
    if match is None or path is None or text is None:
        return []
    name = match[1]
    origins = [
        (_relative(path, other), False)
        for other in await project.mentions(name, *SUFFIXES)
        if other != path
        and not is_protected(other)
        and name in exported(await project.read(other) or "")
    ]
    origins += [(_ORIGIN[name], False)] if name in _ORIGIN else []
    origins += [(f"node:{name}", True)] if name in _MODULES else []
    return [
        Proposal(
            "missing import",
            f"{name} is used and not imported, {origin} has it",
            {path: _imported(text, name, origin, is_default)},
        )
        for origin, is_default in origins
    ]


def exported(text: str) -> set[str]:
    """Return the names that a module exports."""
    names = {m[1] or m[2] for m in _EXPORTED.finditer(text)}
    for match in _LISTED.finditer(text):
        names |= {part.split(" as ")[-1].split(":")[0].strip() for part in match[1].split(",")}
    return {name for name in names if name}


def _relative(path: str, other: str) -> str:
    to = posixpath.relpath(other, posixpath.dirname(path) or ".")
    to = re.sub(r"\.[cm]?tsx?$", ".js", to)
    return to if to.startswith(".") else f"./{to}"


def _imported(text: str, name: str, origin: str, is_default: bool) -> str:
    modern = bool(re.search(r"^(?:import|export)\b", text, re.MULTILINE))
    quote = "'" if re.search(r"(?:from |require\()'", text) else '"'
    end = ";" if re.search(r";\s*$", text, re.MULTILINE) else ""
    what = name if is_default else f"{{ {name} }}"
    if modern:
        line = f"import {what} from {quote}{origin}{quote}{end}\n"
    else:
        line = f"const {what} = require({quote}{origin}{quote}){end}\n"
    same = re.search(rf"^import \{{([^}}\n]*)\}} from ([\"']){re.escape(origin)}\2", text, re.M)
    if same and not is_default:
        names = ", ".join(sorted({*(n.strip() for n in same[1].split(",")), name}))
        return text[: same.start(1)] + f" {names} " + text[same.end(1) :]
    lines = text.splitlines(keepends=True)
    last = [n for n, line_text in enumerate(lines, 1) if _HEAD.match(line_text)]
    at = last[-1] if last else 1 if lines and lines[0].startswith("#!") else 0
    gap = [] if last or not lines else ["\n"]
    return "".join([*lines[:at], line, *gap, *lines[at:]])


def _replace(text: str, old: str, new: str, line: int | None = None) -> str:
    word = re.compile(rf"(?<![\w$]){re.escape(old)}(?![\w$])")
    lines = text.splitlines(keepends=True)
    return "".join(
        word.sub(new, line_text) if line in (None, number) else line_text
        for number, line_text in enumerate(lines, 1)
    )


async def _renamed(old: str, new: str, reason: str, project: ProjectView) -> list[Proposal]:
    contents: dict[str, str] = {}
    for path in await project.mentions(old, *SUFFIXES):
        if is_protected(path):
            return []
        contents[path] = _replace(await project.read(path) or "", old, new)
    return [Proposal("typo", f"{reason}; renamed", contents)] if contents else []


async def wrong_export(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to export a definition, or to import the exported name."""
    match, path = _NO_EXPORT.search(failure.message), failure.file
    if match is None or not path:
        return []
    wrong, folder = match[2], posixpath.dirname(path)
    origin = posixpath.normpath(posixpath.join(folder, match[1]))
    text = await project.read(origin)
    if text is None or is_protected(origin):
        return []
    defines = rf"^(?=(?:async\s+)?(?:function\*?|class|const|let|var)\s+{re.escape(wrong)}\b)"
    hidden = re.search(defines, text, re.MULTILINE)
    if hidden:
        fixed = f"{text[: hidden.start()]}export {text[hidden.start() :]}"
        return [Proposal("missing export", f"{origin} does not export {wrong}", {origin: fixed})]
    near = nearest(wrong, exported(text))
    if near is None:
        return []
    reason = f"{origin} exports {near}, not {wrong}"
    if is_protected(path):
        return await _renamed(near, wrong, reason, project)
    fixed = _replace(await project.read(path) or "", wrong, near)
    return [Proposal("typo", reason, {path: fixed})]


async def wrong_module(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the file that a path in an import was meant for."""
    match, path = _NO_MODULE.search(failure.message), _ours(failure)
    text = await project.read(path) if path else None
    if match is None or path is None or text is None:
        return []
    folder = posixpath.dirname(path)
    files = [file for file in await project.files() if file.endswith((*SUFFIXES, ".json"))]
    proposals = []
    for spec in re.findall(r"(?:from|require\(|import\()\s*[\"'](\.[^\"']*)[\"']", text):
        target = posixpath.normpath(posixpath.join(folder, spec))
        if target in files or not _is_lost(target, spec, match[1], project.root):
            continue
        for other in _candidates(target, files):
            fixed = text.replace(spec, _relative(path, other))
            reason = f"there is no {spec}, there is {_relative(path, other)}"
            proposals.append(Proposal("wrong import", reason, {path: fixed}))
    return proposals


def _is_lost(target: str, spec: str, lost: str, root: str) -> bool:
    return lost in (spec, target) or inside(lost, root) == target


def _candidates(target: str, files: list[str]) -> Iterator[str]:
    yield from (f for f in files if PurePosixPath(f).with_suffix("") == PurePosixPath(target))
    yield from (
        f"{target}/{name}" for name in ("index.js", "index.mjs") if f"{target}/{name}" in files
    )
    base = PurePosixPath(target)
    beside = {PurePosixPath(f).name: f for f in files if PurePosixPath(f).parent == base.parent}
    near = nearest(base.name, beside) or nearest(f"{base.name}.js", beside)
    if near:
        yield beside[near]
    else:
        yield from [f for f in files if PurePosixPath(f).name == base.name][:2]


async def open_bracket(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the bracket that a line leaves open; the checks say whether it was that."""
    path = _ours(failure)
    text = await project.read(path) if path else None
    if failure.kind != "syntax" or path is None or text is None or not failure.line:
        return []
    lines = text.splitlines(keepends=True)
    if not failure.line <= len(lines):
        return []
    proposals = []
    for number, closed in _closings(lines, failure.line):
        source = "".join([*lines[: number - 1], closed, *lines[number:]])
        reason = failure.message.splitlines()[0]
        proposals.append(Proposal("syntax", reason, {path: source}))
    return proposals[:3]


def _closings(lines: list[str], number: int) -> Iterator[tuple[int, str]]:
    """Lines with the bracket that is still open at their end."""
    for at in (number, number - 1):
        line = lines[at - 1] if at else ""
        bare = _BLANKED.sub(lambda m: "_" * len(m[0]), line).rstrip()
        missing = [mark for mark in _open(bare) if mark != "{"]
        if not missing and at == number:
            missing = _open(_BLANKED.sub("_", "".join(lines[:number])))[-1:]
        closers = "".join(_CLOSERS[mark] for mark in reversed(missing))
        tail = next(tail for tail in (" {", ";", ",", "") if bare.endswith(tail))
        cut = len(bare) - len(tail)
        if closers:
            yield at, line[:cut] + closers + line[cut:]


def _open(text: str) -> list[str]:
    """The brackets that a text opens and does not close."""
    stack: list[str] = []
    for mark in text:
        if mark in _CLOSERS:
            stack.append(mark)
        elif stack and mark == _CLOSERS[stack[-1]]:
            stack.pop()
    return stack
