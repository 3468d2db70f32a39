"""Fix small syntax errors at the place the Python parser reports."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from evercontext.agent.repair.edits import Proposal
from evercontext.agent.repair.fixers.spelling import nearest, ranked_nearest
from evercontext.agent.repair.project_view import ProjectView
from evercontext.agent.repair.protection import is_protected
from evercontext.workspace.failures.failure import Failure

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_MOST_SLIPS = 4
_LONGEST = 400_000


async def broken_syntax(failure: Failure, project: ProjectView) -> list[Proposal]:
    """Propose the smallest changes after which the file parses again."""
    path = failure.file
    if failure.kind != "syntax" or not path or not path.endswith(".py") or is_protected(path):
        return []
    text = await project.read(path)
    if text is None or len(text) > _LONGEST:
        return []
    reason = failure.message.splitlines()[0]
    return [Proposal("syntax", reason, {path: fixed}) for fixed in repaired_sources(text)]


def repaired_sources(text: str) -> list[str]:
    """Return sources that parse, one or two slips away from one that does not."""
    error = _error(text)
    current, parsing = text, []
    for _ in range(_MOST_SLIPS):
        if error is None:
            break
        tries = list(
            dict.fromkeys(source for source in _tries(current, error) if source != current)
        )
        parsing = [source for source in tries if _error(source) is None]
        if parsing:
            return parsing[:3]
        further = [(e.lineno or 0, source) for source in tries if (e := _error(source))]
        last = error.lineno or 0
        ahead = [source for line, source in further if line > last]
        if not ahead:
            break
        current, error = ahead[0], _error(ahead[0])
    return parsing


def _error(text: str) -> SyntaxError | None:
    try:
        compile(text, "<text>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        return SyntaxError("not readable", ("<text>", None, None, None))
    return None


def _tries(text: str, error: SyntaxError) -> Iterator[str]:
    """Yield fixes that the parser's message suggests, then frequent omissions."""
    lines = text.splitlines(keepends=True)
    number, message = error.lineno or 0, error.msg or ""
    if not 1 <= number <= len(lines):
        number = len(lines)
    if not lines:
        return
    column = max(0, (error.offset or 1) - 1)
    for changed in _by_message(lines, number, column, message, error):
        yield "".join([*lines[: number - 1], changed, *lines[number:]])
    if "triple-quoted" in message:
        yield from _triple_quoted(lines)
    yield from _by_block(lines, number, message)
    if "was never closed" in message or "EOF" in message or "invalid syntax" in message:
        yield from _closed(lines, number, message)
    for near in range(number, max(0, number - 2), -1):
        for changed in _often(lines[near - 1]):
            yield "".join([*lines[: near - 1], changed, *lines[near:]])


def _by_message(
    lines: list[str], number: int, column: int, message: str, error: SyntaxError
) -> Iterator[str]:
    line = lines[number - 1]
    if "expected ':'" in message:
        yield line[:column].rstrip() + ":" + line[column:]
        yield _colon(line)
    if "unmatched" in message or "does not match" in message:
        yield line[:column] + line[column + 1 :]
        yield from (line[:column] + mark + line[column + 1 :] for mark in _CLOSERS.values())
    if "unterminated" in message:
        yield from _quoted(line, line[column : column + 1])
    if "forgot a comma" in message:
        yield from _with_commas(line, column)
    if "instead of '='" in message:
        yield re.sub(r"(?<![=!<>:+\-*/%&|^])=(?!=)", "==", line, count=1)
    if "Missing parentheses in call to" in message:
        yield re.sub(r"\b(print|exec)\s+(.+?)(\s*(?:#.*)?)$", r"\1(\2)\3", line, count=1)
    if "leading zeros" in message:
        yield re.sub(r"\b0+(\d)", r"\1", line, count=1)


def _colon(line: str) -> str:
    code, comment = _split_comment(line)
    return code.rstrip() + ":" + code[len(code.rstrip()) :] + comment


def _split_comment(line: str) -> tuple[str, str]:
    match = re.search(r"\s+#[^'\"]*$", line)
    return (line[: match.start()], line[match.start() :]) if match else (line, "")


def _quoted(line: str, quote: str) -> Iterator[str]:
    mark = quote if quote in "\"'" and quote else '"'
    bare = line.rstrip("\r\n")
    ending = line[len(bare) :]
    for at in range(len(bare), max(0, len(bare) - 4), -1):
        yield bare[:at] + mark + bare[at:] + ending


def _triple_quoted(lines: list[str]) -> Iterator[str]:
    """A text in three quotes that ends with two, or begins with two."""
    for at, line in enumerate(lines):
        for mark in ('"', "'"):
            bare = line.rstrip("\r\n")
            if re.search(rf"(?<!{mark}){mark}{{2}}$", bare) and bare.strip(f"{mark} "):
                yield "".join([*lines[:at], bare + mark + line[len(bare) :], *lines[at + 1 :]])
            elif re.match(rf"\s*{mark}{{2}}[^{mark}\s]", bare):
                changed = line.replace(mark * 2, mark * 3, 1)
                yield "".join([*lines[:at], changed, *lines[at + 1 :]])


def _with_commas(line: str, column: int) -> Iterator[str]:
    for match in re.finditer(r"(?<=[\w\]\)}\"'])\s+(?=[\w\[({\"'])", line[column:]):
        at = column + match.start()
        yield line[:at] + "," + line[at:]
    bare = line.rstrip()
    yield bare + "," + line[len(bare) :]


def _by_block(lines: list[str], number: int, message: str) -> Iterator[str]:
    """Indentation: of one line, or of all that follow on the same level."""
    if "inconsistent use of tabs" in message or "unindent" in message:
        yield "".join(line.expandtabs(4) for line in lines)
    if "expected an indented block" in message and (above := re.search(r"on line (\d+)", message)):
        head = lines[int(above[1]) - 1]
        inner = _indent(head) + "    "
        for count in (1, 2, 3, 4):
            block = [
                inner + line.lstrip() if line.strip() else line
                for line in lines[number - 1 : number - 1 + count]
            ]
            yield "".join([*lines[: number - 1], *block, *lines[number - 1 + count :]])
    if "unexpected indent" in message or "unindent does not match" in message:
        levels = {_indent(line) for line in lines[: number - 1] if line.strip()}
        for level in sorted(levels, key=len, reverse=True):
            changed = level + lines[number - 1].lstrip()
            yield "".join([*lines[: number - 1], changed, *lines[number:]])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _closed(lines: list[str], number: int, message: str) -> Iterator[str]:
    """A bracket that was never closed, closed on its line or one of the next."""
    opened = re.search(r"'([(\[{])' was never closed", message)
    for mark in [_CLOSERS[opened[1]]] if opened else list(_CLOSERS.values()):
        for at in range(number - 1, min(len(lines), number + 12)):
            bare, comment = _split_comment(lines[at].rstrip("\r\n"))
            ending = lines[at][len(bare) + len(comment) :] or "\n"
            bare = bare.rstrip()
            for tail in (":", ",", "):", ")", ""):
                if bare.endswith(tail) and bare.strip():
                    head = bare[: len(bare) - len(tail)]
                    changed = head + mark + tail + comment + ending
                    yield "".join([*lines[:at], changed, *lines[at + 1 :]])


def _often(line: str) -> Iterator[str]:
    """Yield frequent omissions and typing errors, for any message of the parser."""
    word = re.match(r"\s*(\w+)", line)
    if word and not keyword.iskeyword(word[1]):
        keywords = ranked_nearest(word[1], [k for k in keyword.kwlist if len(k) > 2])
        yield from (line.replace(word[1], other, 1) for _, other in keywords)
    opens = r"\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with)\b"
    if re.match(opens, line) and not _split_comment(line)[0].rstrip().endswith(":"):
        yield _colon(line)
    for other in re.findall(r"\b[a-z]{3,9}\b", line):
        near = None if keyword.iskeyword(other) else nearest(other, ("import", "lambda", "return"))
        if near:
            yield re.sub(rf"\b{other}\b", near, line, count=1)
