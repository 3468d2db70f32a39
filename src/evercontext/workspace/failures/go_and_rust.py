"""Parse failures of Go and Rust: compilers, vet and clippy, and their test runners."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evercontext.workspace.failures.failure import Failure, Hint, Kind, cut, inside, located

_GO_LINE = re.compile(r"^(?:vet: )?((?:\./)?[^\s:]{1,500}\.go):(\d+):(?:(\d+):)? (.+)$")
_GO_FAIL = re.compile(r"^( *)--- FAIL: (\S+) ")
_GO_LOG = re.compile(r"^ +(\S+_test\.go):(\d+): (.*)$")
_GO_PACKAGE = re.compile(r"^FAIL\s+(\S+)\s")
_GO_FRAME = re.compile(r"^\t(\S+\.go):(\d+)")
_RUST = re.compile(r"^(error|warning)(?:\[(E\d+)\])?: (.+)$")
_RUST_AT = re.compile(r"^\s*--> (\S[^:]*):(\d+):(\d+)$")
_RUST_HINT = re.compile(r"^\s*(\d+)\s([-+~|])(.*)$")
_RUST_MARKS = re.compile(r"^\s*\|\s*[+~]+\s*$")
_RUST_INLINE = re.compile(r"^\s*\|(\s*)[\^-]\s*help: add [`'](.+)[`'] here$")
_CARGO_TEST = re.compile(r"^---- (\S+) stdout ----$")
_CARGO_FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.MULTILINE)
_PANIC = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (\S+):(\d+):(\d+):$")
_BACKTRACE = re.compile(r"^\s+at (\S+?):(\d+)(?::\d+)?$")
_IGNORED = (
    "could not compile",
    "test failed, to rerun",
    "aborting due to",
    "doctest failed",
    "build failed",
    "target failed",
)


def read_go(text: str, root: str) -> list[Failure]:
    """Return the failures of ``go build``, ``go vet`` and ``go test``."""
    lines = text.splitlines()
    built = [_go_error(m, root) for line in lines if (m := _GO_LINE.match(line))]
    return [*built, *_go_tests(lines, root)]


def _go_error(match: re.Match[str], root: str) -> Failure:
    message = match[4]
    kind: Kind = "error"
    if message.startswith("undefined: "):
        kind = "name"
    elif message.startswith("syntax error"):
        kind = "syntax"
    elif "imported and not used" in message:
        kind = "import"
    column = int(match[3]) if match[3] else None
    file = inside(match[1], root)
    return Failure("go", kind, cut(message), file, int(match[2]), column, blocks=True)


def _go_tests(lines: Sequence[str], root: str) -> Iterator[Failure]:
    starts = [n for n, line in enumerate(lines) if _GO_FAIL.match(line)]
    for number, start in enumerate(starts):
        head = _GO_FAIL.match(lines[start])
        assert head is not None
        end = next((n for n in range(start + 1, len(lines)) if _ends_go(lines[n])), len(lines))
        body, package = lines[start + 1 : end], _go_package(lines[start:], root)
        nested = number + 1 < len(starts) and starts[number + 1] <= end
        yield _go_failure(head[2], body, package, nested, root)


def _ends_go(line: str) -> bool:
    return bool(_GO_FAIL.match(line) or re.match(r"^(?:FAIL|ok|PASS|--- )\b", line))


def _go_package(lines: Sequence[str], root: str) -> str:
    return next((m[1] for line in lines if (m := _GO_PACKAGE.match(line))), "")


def _go_failure(name: str, body: Sequence[str], package: str, nested: bool, root: str) -> Failure:
    logged = next((m for line in body if (m := _GO_LOG.match(line))), None)
    panic = next((line for line in body if line.startswith("panic: ")), None)
    message = panic or (logged[3] if logged else "a subtest failed" if nested else "failed")
    failure = Failure(
        "go", "error" if panic else "assertion", cut(message), test=f"{package}.{name}".lstrip(".")
    )
    frames = [(m[1], int(m[2])) for line in body if (m := _GO_FRAME.match(line))]
    if frames:
        return located(failure, reversed(frames), root)
    if logged:
        # Only the name is printed: the package says the directory, below its module's name.
        folder = "/".join(package.split("/")[2:]) if "." in package.split("/")[0] else ""
        folder = folder.split("/", 1)[1] if "/" in folder else folder
        return replace(
            failure, file=logged[1] if not folder else f"{folder}/{logged[1]}", line=int(logged[2])
        )
    return failure


def read_rust(text: str, root: str) -> list[Failure]:
    """Return the failures of ``cargo build``, ``clippy``, ``test`` and ``rustc``."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if _RUST.match(line)]
    built: dict[tuple[object, ...], Failure] = {}
    for start in starts:
        end = next((n for n in range(start + 1, len(lines)) if not lines[n].strip()), len(lines))
        error = _rust_error(lines[start:end], root)
        if error:
            # The library and its tests are compiled apart and say the same twice.
            built.setdefault((*error.key, error.line, error.column), error)
    errors = list(built.values())
    if any(failure.blocks for failure in errors):
        errors = [failure for failure in errors if failure.blocks]
    return [*errors, *_cargo_tests(text, lines, root)]


def _rust_error(lines: Sequence[str], root: str) -> Failure | None:
    head = _RUST.match(lines[0])
    at = next((m for line in lines if (m := _RUST_AT.match(line))), None)
    if head is None or at is None or head[3].startswith(_IGNORED):
        return None
    code, message = head[2], head[3]
    file, fatal = inside(at[1], root), head[1] == "error"
    return Failure(
        "rust",
        _rust_kind(code, message, fatal),
        cut(message),
        file,
        int(at[2]),
        int(at[3]),
        code=code or ("error" if fatal else "warning"),
        hints=tuple(_rust_hints(lines)),
        blocks=fatal,
    )


def _rust_kind(code: str | None, message: str, fatal: bool) -> Kind:
    if not fatal:
        return "lint"
    if code in ("E0425", "E0433", "E0412"):
        return "name"
    if code in ("E0432", "E0583", "E0463"):
        return "import"
    if code in ("E0599", "E0609"):
        return "attribute"
    return "type" if code in ("E0308", "E0061") else "error" if code else "syntax"


def _rust_hints(lines: Sequence[str]) -> Iterator[Hint]:
    """The lines below ``help:``: ``1 + new``, ``8 - old`` with ``8 + new``, or a marked line."""
    helping = False
    removed: dict[int, str] = {}
    for number, line in enumerate(lines):
        if line.startswith("help: "):
            if helping:
                return  # a second way to fix it: which one is meant is not ours to guess
            helping = True
        if inline := _RUST_INLINE.match(line):
            yield from _inline_hint(lines, number, inline)
        shown = _RUST_HINT.match(line) if helping else None
        if shown is None:
            continue
        at, text = int(shown[1]), shown[3].removeprefix(" ")
        if shown[2] == "-":
            removed[at] = text
        elif shown[2] == "+":
            yield Hint(at, text, removed.get(at))
        elif shown[2] == "~" or (number + 1 < len(lines) and _RUST_MARKS.match(lines[number + 1])):
            yield Hint(at, text, "")


def _inline_hint(lines: Sequence[str], number: int, inline: re.Match[str]) -> Iterator[Hint]:
    shown = _RUST_HINT.match(lines[number - 1])
    if shown and shown[2] == "|":
        text, at = shown[3].removeprefix(" "), len(inline[1]) - 1
        yield Hint(int(shown[1]), text[:at] + inline[2] + text[at:], text)


def _cargo_tests(text: str, lines: Sequence[str], root: str) -> Iterator[Failure]:
    headings = {m[1]: n for n, line in enumerate(lines) if (m := _CARGO_TEST.match(line))}
    for name in dict.fromkeys(_CARGO_FAILED.findall(text)):
        start = headings.get(name)
        rest = lines[start + 1 : start + 200] if start is not None else []
        body = list(itertools.takewhile(lambda line: not _CARGO_TEST.match(line), rest))
        yield _cargo_failure(name, body, root)


def _cargo_failure(name: str, body: Sequence[str], root: str) -> Failure:
    at = next((n for n, line in enumerate(body) if _PANIC.match(line)), None)
    failure = Failure("cargo", "assertion", "failed", test=name)
    panic = _PANIC.match(body[at]) if at is not None else None
    if panic is None or at is None:
        return failure
    words: list[str] = []
    for line in body[at + 1 :]:
        if line.startswith(("stack backtrace:", "note: ")) or not line.strip():
            break
        words.append(line)
    message = "\n".join(words)
    failure = replace(
        failure, kind="assertion" if "assertion" in message else "error", message=cut(message)
    )
    frames = [(m[1], int(m[2])) for line in body if (m := _BACKTRACE.match(line))]
    return located(failure, [*reversed(frames), (panic[1], int(panic[2]))], root)
