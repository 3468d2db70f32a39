"""Parse failures of ``node --test`` and vitest, and of programs node could not load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evercontext.workspace.failures.failure import (
    Failure,
    Kind,
    blocks,
    cut,
    inside,
    kind_of,
    located,
)

_NOT_OK = re.compile(r"^( *)not ok \d+ - (.*)$")
_SUBTEST = re.compile(r"^( *)# Subtest: (.*)$")
_FIELD = re.compile(r"^\s*(\w+): (.*)$")
_ERROR = re.compile(r"^\s*(?:Uncaught )?(\w*Error)(?: \[(\w+)\])?: (.*)$")
_STACK = re.compile(
    r"(?:at (?:.*? \()?|❯ (?:.*? )?|\(|^)((?:file://)?[^\s():]{1,500}):(\d+):(\d+)\)?"
)
_FILE_LINE = re.compile(r"^(?:file://)?(/[^\s:]{1,500}):(\d+)$")
_IMPORTED = re.compile(r"imported from (\S+)|Require stack:\s*-\s*(\S+)")
_SPEC_AT = re.compile(r"^test at (\S[^:]*):(\d+):(\d+)$")
_SPEC_NAME = re.compile(r"^\s*✖ (.+) \([\d.]+m?s\)$")
_VITEST = re.compile(r"^ FAIL {2}(\S+)(?: > (.+)| \[ .* \])?$")
_TAP_TEXT = re.compile(r"^#( |$)")


def read_node(text: str, root: str) -> list[Failure]:
    """Return the failures of ``node --test``, in TAP or in the spec reporter."""
    lines = text.splitlines()
    if any(_NOT_OK.match(line) for line in lines):
        return list(_tap(lines, root))
    if "✖ failing tests:" in text:
        return list(_spec(lines, root))
    return []


def read_crash(text: str, root: str) -> list[Failure]:
    """Return the error that ended a program of node's, outside any test."""
    if "Node.js v" not in text:
        return []
    failure = _crash(text.splitlines(), root)
    return [failure] if failure else []


def _tap(lines: Sequence[str], root: str) -> Iterator[Failure]:
    names: dict[int, str] = {}
    since = 0
    for number, line in enumerate(lines):
        if subtest := _SUBTEST.match(line):
            depth = len(subtest[1])
            names = {at: name for at, name in names.items() if at < depth} | {depth: subtest[2]}
        elif ended := _NOT_OK.match(line):
            fields = _yaml(lines, number + 1)
            path = [name for at, name in sorted(names.items()) if at < len(ended[1])]
            crash = [_TAP_TEXT.sub("", row) for row in lines[since:number]]
            if fields.get("failureType") not in ("subtestsFailed", "parentAlreadyFinished"):
                yield _tap_failure([*path, ended[2]], fields, crash, root)
            since = number + 1


def _yaml(lines: Sequence[str], start: int) -> dict[str, str]:
    """The fields of a diagnostic block; node writes scalars and ``|-`` texts only."""
    fields: dict[str, str] = {}
    name, indent = "", 0
    for line in lines[start : start + 400]:
        if line.strip() == "...":
            break
        field = _FIELD.match(line)
        depth = len(line) - len(line.lstrip())
        if name and (depth > indent or not line.strip()):
            fields[name] += line.strip() + "\n"
        elif field and field[2] == "|-":
            name, indent, fields[field[1]] = field[1], depth, ""
        elif field:
            name, fields[field[1]] = "", field[2].strip("'\"")
    return fields


def _tap_failure(
    path: Sequence[str], fields: dict[str, str], crash: Sequence[str], root: str
) -> Failure:
    if fields.get("error") == "test failed":
        return _file_failed(path[-1], crash, root)
    raised = fields.get("name") or "Error"
    where = fields.get("location", "").rsplit(":", 2)[0]
    message = f"{raised}: {fields.get('error', '').strip()}"
    failure = Failure(
        "node", _kind(raised, message), cut(message), test=_id(where, path, root), code=raised
    )
    return _placed(failure, fields.get("stack", "").splitlines(), where, root)


def _file_failed(name: str, crash: Sequence[str], root: str) -> Failure:
    """A test file that could not even be loaded."""
    file = inside(name, root)
    failure = _crash(crash, root) or Failure("node", "error", "the file could not be run", file)
    return replace(failure, test=file or name, blocks=True)


def _crash(lines: Sequence[str], root: str) -> Failure | None:
    for number, line in enumerate(lines):
        error = _ERROR.match(line)
        if error is None:
            continue
        message = f"{error[1]}: {error[3]}"
        failure = Failure(
            "node", _kind(error[1], message), cut(message), code=error[2] or error[1], blocks=True
        )
        shown = [m for row in lines[max(0, number - 8) : number] if (m := _FILE_LINE.match(row))]
        if shown and (file := inside(shown[-1][1], root)):
            return replace(failure, file=file, line=int(shown[-1][2]))
        return _placed(failure, lines[number : number + 30], "", root)
    return None


def _placed(failure: Failure, stack: Sequence[str], where: str, root: str) -> Failure:
    """Stacks are written innermost first."""
    frames = [(m[1], int(m[2])) for line in stack if (m := _STACK.search(line))]
    importer = _IMPORTED.search("\n".join(stack[:4])) or _IMPORTED.search(failure.message)
    if importer and not frames:
        frames = []
    failure = located(failure, reversed(frames), root)
    if importer and (file := inside(importer[1] or importer[2], root)):
        failure = replace(failure, file=file, line=failure.line if failure.file == file else None)
    if failure.file is None and where:
        failure = replace(failure, file=inside(where, root))
    return failure


def _kind(raised: str, message: str) -> Kind:
    if "Cannot find module" in message or "does not provide an export" in message:
        return "import"
    if "Cannot find package" in message or "Failed to resolve import" in message:
        return "import"
    if "ENOENT" in message:
        return "file"
    return "syntax" if "invalid JS syntax" in message else kind_of(raised)


def _id(where: str, path: Sequence[str], root: str) -> str:
    return " > ".join([inside(where, root) or where, *path])


def _spec(lines: Sequence[str], root: str) -> Iterator[Failure]:
    begin = next(n for n, line in enumerate(lines) if line.strip() == "✖ failing tests:")
    crashes = dict(_spec_crashes(lines[:begin]))
    for block in blocks(lines[begin:], _SPEC_AT.match):
        at, name = _SPEC_AT.match(block[0]), _SPEC_NAME.match(block[1] if block[1:] else "")
        if at and name and name[1] in crashes:
            yield _file_failed(name[1], crashes[name[1]], root)
        elif at and name:
            yield _spec_failure(at[1], name[1], block[2:], root)


def _spec_crashes(lines: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    since = 0
    for number, line in enumerate(lines):
        if (name := _SPEC_NAME.match(line)) and name[1].startswith("/"):
            yield name[1], lines[since:number]
        if _SPEC_NAME.match(line) or line.lstrip().startswith("✔"):
            since = number + 1


def _spec_failure(where: str, name: str, body: Sequence[str], root: str) -> Failure:
    error = next((m for line in body if (m := _ERROR.match(line))), None)
    raised = error[1] if error else "Error"
    words = [line.strip() for line in body[:12] if not line.strip().startswith("at ")]
    message = "\n".join(word for word in words if word).split(" {", 1)[0]
    message = re.sub(r"^(\w*Error) \[\w+\]:", r"\1:", message)
    test = _id(where, [name], root)
    failure = Failure("node", _kind(raised, message), cut(message), test=test, code=raised)
    return _placed(failure, body, where, root)


def read_vitest(text: str, root: str) -> list[Failure]:
    """Return the failures of vitest."""
    lines = text.splitlines()
    return [_vitest_failure(block, root) for block in blocks(lines, _VITEST.match)]


def _vitest_failure(lines: Sequence[str], root: str) -> Failure:
    head = _VITEST.match(lines[0])
    assert head is not None
    error = next((m for line in lines[1:4] if (m := _ERROR.match(line))), None)
    raised = error[1] if error else "Error"
    message = f"{raised}: {error[3]}" if error else "\n".join(lines[1:4])
    test = f"{head[1]} > {head[2]}" if head[2] else head[1]
    loading = head[2] is None
    failure = Failure(
        "vitest", _kind(raised, message), cut(message), test=test, code=raised, blocks=loading
    )
    named = next((m for line in lines if (m := re.match(r"^\s*File: (\S+?):(\d+):", line))), None)
    if named and (file := inside(named[1], root)):
        return replace(failure, file=file, line=int(named[2]))
    return _placed(failure, [line for line in lines if "❯" in line], head[1], root)
