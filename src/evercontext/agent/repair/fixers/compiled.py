"""Rust and Go: what the compiler itself proposes, imports, and names that are nearly right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.spelling import nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure, Hint

_ALIKE = 0.6
_GO_UNUSED = re.compile(r'^"([^"]+)" imported (?:as \w+ )?and not used')
_GO_UNDEFINED = re.compile(r"^undefined: (\w+)$")
_GO_PACKAGES = """
    bufio bytes context errors flag fmt io log math os path reflect regexp runtime slices maps sort
    strconv strings sync testing time unicode encoding/json encoding/csv net/http net/url os/exec
    path/filepath math/rand crypto/sha256 encoding/hex encoding/base64 sync/atomic text/template
    unicode/utf8
"""
_GO_BUILTIN = (
    "append cap close copy delete len make new panic print println string int error nil true"
)


async def compiler_hint(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose what rustc proposes, where the line is the one it speaks of."""
    path = failure.file
    text = await project.read(path) if path and failure.hints else None
    if path is None or text is None or is_protected(path):
        return []
    mended = applied(text, failure.hints)
    if mended is None or mended == text:
        return []
    by = "missing import" if failure.hints[0].new.lstrip().startswith("use ") else "typo"
    return [Proposal(by, f"rustc: {failure.message}", {path: mended})]


def applied(text: str, hints: Sequence[Hint]) -> str | None:
    """Return the text as the compiler would have it; ``None`` if the lines are not as it says."""
    lines = text.splitlines(keepends=True)
    for hint in sorted(hints, key=lambda one: -one.line):
        at = hint.line - 1
        if not 0 <= at <= len(lines):
            return None
        if hint.old is None:
            if hint.new.lstrip().startswith("use ") and hint.new + "\n" in lines:
                return None
            lines.insert(at, hint.new + "\n")
            continue
        if at == len(lines):
            return None
        here = lines[at].rstrip("\r\n")
        alike = difflib.SequenceMatcher(None, here, hint.new).ratio()
        if (hint.old and here.strip() != hint.old.strip()) or alike < _ALIKE:
            return None
        lines[at] = hint.new + lines[at][len(here) :]
    return "".join(lines)


async def go_import(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose to leave out an unused import, or to add a package of Go's own."""
    path = failure.file
    text = await project.read(path) if path and path.endswith(".go") else None
    if path is None or text is None or is_protected(path):
        return []
    if unused := _GO_UNUSED.match(failure.message):
        mended = _without_package(text, unused[1])
        return [Proposal("unused import", f"{unused[1]} is not used", {path: mended})]
    name = _GO_UNDEFINED.match(failure.message)
    packages = [one for one in _GO_PACKAGES.split() if name and one.split("/")[-1] == name[1]]
    return [
        Proposal("missing import", f"{one} is used and not imported", {path: _with(text, one)})
        for one in packages
        if re.search(rf"\b{one.split('/')[-1]}\.[A-Z]", text)
    ]


def _without_package(text: str, package: str) -> str:
    quoted = re.escape(f'"{package}"')
    text = re.sub(
        rf"^\s*import\s+(?:\w+\s+)?{quoted}\s*\n(?:\n(?=\n))?", "", text, count=1, flags=re.M
    )
    text = re.sub(rf"^\s+(?:\w+\s+)?{quoted}\s*\n", "", text, count=1, flags=re.M)
    return re.sub(r"^import \(\s*\)\n\n?", "", text, flags=re.M)


def _with(text: str, package: str) -> str:
    block = re.search(r"^import \(\n((?:.*\n)*?)\)", text, re.M)
    if block:
        lines = sorted({*block[1].splitlines(), f'\t"{package}"'} - {""})
        return text[: block.start(1)] + "\n".join(lines) + "\n" + text[block.end(1) :]
    single = re.search(r'^import ("[^"]+")\n', text, re.M)
    if single:
        both = "\n".join(sorted([f"\t{single[1]}", f'\t"{package}"']))
        return f"{text[: single.start()]}import (\n{both}\n)\n{text[single.end() :]}"
    return re.sub(r"^(package \w+\n)", rf'\1\nimport "{package}"\n', text, count=1, flags=re.M)


async def go_name(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the name of the package that an undefined one is nearest to."""
    match, path = _GO_UNDEFINED.match(failure.message), failure.file
    text = await project.read(path) if path and path.endswith(".go") else None
    if match is None or path is None or text is None:
        return []
    folder = path.rpartition("/")[0]
    beside = [
        one
        for one in await project.files()
        if one.endswith(".go") and one.rpartition("/")[0] == folder
    ]
    known = set(_GO_BUILTIN.split())
    for one in beside[:50]:
        known |= _declared(await project.read(one) or "")
    near = nearest(match[1], known)
    if near is None:
        return []
    said = f"{match[1]} is nowhere defined, {near} is"
    if not is_protected(path):
        mended = re.sub(rf"\b{match[1]}\b", near, text)
        return [Proposal("typo", said, {path: mended})]
    made = {
        one: re.sub(rf"\b{near}\b", match[1], await project.read(one) or "")
        for one in beside
        if not is_protected(one)
    }
    return [Proposal("typo", f"{said}; renamed", made)]


def _declared(text: str) -> set[str]:
    found = set(re.findall(r"^(?:func|type|var|const)\s+(?:\([^)]*\)\s*)?(\w+)", text, re.M))
    for left in re.findall(r"([\w, ]+?)\s*:=", text):
        found |= {word.strip() for word in left.replace("for ", "").split(",")}
    for inner in re.findall(r"func\s*(?:\([^)]*\)\s*)?\w*\(([^)]*)\)", text):
        found |= set(re.findall(r"(\w+)(?:,| [\[\]*\w.]+)", inner))
    return {word for word in found if word}
