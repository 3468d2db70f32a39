"""English pairs for tools, memories and questions: what says the same thing in two ways."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator

Line = tuple[str, str, str]
_WORDS = re.compile(r"[A-Za-z][a-z]+")
MOST_OF_ONE_KIND = 150


def readable(text: str, least: int = 3) -> bool:
    """True if a text is mostly English words."""
    return len(_WORDS.findall(text)) >= least and sum(c.isascii() for c in text) > 0.95 * len(text)


def tidy(text: str) -> str:
    """Return markdown as plain words on one line."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|<[^>]+>|https?://\S+", " ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"[*`_#>|]{1,3}", " ", text)).strip()


def sections(markdown: str) -> Iterator[Line]:
    """Yield (heading, first paragraph) of a readme."""
    for match in re.finditer(
        r"^#{1,4}\s+(.+?)\s*#*$\n+((?:(?!\n#)[\s\S])+?)(?=\n\s*\n|\n#|\Z)", markdown, re.M
    ):
        heading, text = tidy(match[1]), tidy(match[2])[:400]
        if readable(heading, 2) and readable(text, 6) and "```" not in match[2]:
            yield "section", heading, text


def bullets(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield (name, description) of bullets and table rows that explain a name."""
    pattern = (
        r"^\s*(?:[-*+]|\|)\s*\**`?\**([A-Za-z_][\w./-]{2,40})`?\**"
        r"\s*(?:\([^)]*\))?\s*(?:[-:–—|])+\s+(.{15,300})$"
    )
    for match in re.finditer(pattern, markdown, re.M):
        text = tidy(match[2])
        if readable(text, 3):
            yield match[1], text


def _constant(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\s+", " ", node.value).strip()
    return ""


def python_tools(source: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, description, parameters) of the tools a Python server declares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any("tool" in ast.unparse(d) for d in node.decorator_list):
                arguments = " ".join(a.arg for a in node.args.args if a.arg not in ("self", "ctx"))
                yield node.name, re.sub(r"\s+", " ", ast.get_docstring(node) or "")[:500], arguments
        elif isinstance(node, ast.Call) and node.keywords:
            given = {k.arg: k.value for k in node.keywords}
            name, text = _constant(given.get("name")), _constant(given.get("description"))
            if name and text:
                yield name, text[:500], ""


def script_tools(source: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name, description, "") of the tools a JavaScript server declares."""
    text = r"""(?:"((?:[^"\\]|\\.){2,500})"|'((?:[^'\\]|\\.){2,500})'|`([^`]{2,500})`)"""
    for match in re.finditer(
        rf"name:\s*{text},\s*(?:title:\s*{text},\s*)?description:\s*{text}", source
    ):
        groups = [g for g in match.groups() if g]
        yield groups[0], re.sub(r"\\n|\s+", " ", groups[-1]), ""
    for match in re.finditer(
        rf"\.(?:tool|registerTool)\(\s*{text},\s*(?:\{{\s*)?(?:description:\s*)?{text}", source
    ):
        groups = [g for g in match.groups() if g]
        yield groups[0], re.sub(r"\\n|\s+", " ", groups[-1]), ""


def tool_lines(files: dict[str, bytes], readme: str) -> Iterator[Line]:
    """Yield what is known of each tool, said in two ways."""
    said = dict(bullets(readme))
    for path, content in files.items():
        ending = path.rpartition(".")[2]
        if ending not in ("py", "js", "mjs", "ts") or b"tool" not in content.lower():
            continue
        source = content.decode("utf-8", "replace")
        for name, text, extra in python_tools(source) if ending == "py" else script_tools(source):
            if not readable(text, 4) or not re.fullmatch(r"[\w./:-]{3,60}", name):
                continue
            first, _, rest = text.partition(". ")
            yield "tool", first[:300], f"{name} {extra}".strip() + (f" {rest}" if rest else "")
            if name in said and said[name] != text:
                yield "tool", said[name], f"{name}: {text}"


def docstring_halves(files: dict[str, bytes]) -> Iterator[Line]:
    """Yield (summary, following paragraph) of docstrings and comments."""
    pattern = re.compile(
        r'"""\s*([A-Z][^\n"]{20,200}[.\w])\s*\n\s*\n\s*([A-Z][^"]{60,600}?)(?=\n\s*\n|""")'
    )
    for path, content in files.items():
        if path.endswith(".py"):
            for match in pattern.finditer(content.decode("utf-8", "replace")):
                rest = re.sub(r"\s+", " ", match[2]).strip()
                if readable(rest, 10) and not re.match(
                    r"(Args|Parameters|Returns|Example|Note)", rest
                ):
                    yield "halves", match[1].strip(), rest[:400]


_HELP = re.compile(
    r"""add_argument\(\s*(?:["'](-{0,2}[\w-]+)["'],?\s*){1,3}[^)]*?help\s*=\s*["']([^"']{15,200})["']"""
)


def options(files: dict[str, bytes]) -> Iterator[Line]:
    """Yield (help text, option name)."""
    for path, content in files.items():
        if path.endswith(".py") and b"add_argument" in content:
            for match in _HELP.finditer(content.decode("utf-8", "replace")):
                if readable(match[2], 3):
                    yield "option", match[2], match[1].strip("-").replace("-", " ")


def pairs(files: dict[str, bytes]) -> Iterator[Line]:
    """Yield (kind, one way to say it, another way) of a package, each kind capped."""
    readme, summary = "", ""
    for path, content in files.items():
        low = path.lower()
        if low.endswith(("/metadata", "pkg-info")) or low.endswith("readme.md"):
            if (
                "/" in path.strip("/").replace("package/", "", 1)
                and low.endswith("readme.md")
                and readme
            ):
                continue
            text = content.decode("utf-8", "replace")
            head, _, body = (
                text.partition("\n\n") if not low.endswith("readme.md") else ("", "", text)
            )
            found = re.search(r"^Summary: (.+)$", head, re.M)
            summary = found[1] if found else summary
            readme = body or readme
        elif path == "package/package.json":
            try:
                summary = str(json.loads(content).get("description") or "")
            except (ValueError, AttributeError):
                continue
    counts: dict[str, int] = {}
    first = next((tidy(p) for p in re.split(r"\n\s*\n", readme) if readable(tidy(p), 12)), "")
    lines: list[Line] = [("summary", summary, first[:400])] if readable(summary) and first else []
    for line in (
        *lines,
        *sections(readme),
        *tool_lines(files, readme),
        *docstring_halves(files),
        *options(files),
    ):
        counts[line[0]] = counts.get(line[0], 0) + 1
        if counts[line[0]] <= MOST_OF_ONE_KIND and line[1] and line[2]:
            yield line
