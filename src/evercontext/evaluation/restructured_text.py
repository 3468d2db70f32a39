"""Convert reStructuredText to Markdown, line by line, so that one parser reads both.

Only what a judge of form has to know is turned: headings, code, tables, images, links, notes. Every
line keeps its number.
"""

from __future__ import annotations

import re

MOST_NESTED = 5
_STRONG = re.compile(
    r"^\.\. [\w+-]+::|^\.\. _[^:\n]{1,200}:"
    r"|:[\w+-]{1,40}:`[^`\n]{1,500}`|`[^`<\n]{1,300}<[^<>\n]{1,500}>`_"
    r"|^([=#*~^])\1{2,}\n[^\n]{1,200}\n\1{3,}$",
    re.MULTILINE,
)
_LITERAL = re.compile(r"^[^\n]{0,500}::[ \t]*\n[ \t]*\n[ \t]+\S", re.MULTILINE)
_UNDERLINED = re.compile(r"^\S[^\n]{0,200}\n([=~^\"*+#-])\1{2,}[ \t]*$", re.MULTILINE)
_MARKDOWN = re.compile(r"^(?:```|~~~|#{1,6} \S)", re.MULTILINE)
_LINE = re.compile(r"^([!-/:-@\[-`{-~])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"^(\s*)\.\. (?:\|([^|]{1,100})\| )?([\w:+-]+?)::\s*(.*)$")
_OPTION = re.compile(r"^\s+:([\w-]+):\s*(.*)$")
_FIELD = re.compile(r"^:[\w /*-]{1,80}:(?:\s|$)")
_BORDER = re.compile(r"^\s*(?:\+[-=+]{2,}\+|={2,}(?:\s+={2,})+|-{2,}(?:\s+-{2,})+)\s*$")
_SIMPLE = re.compile(r"^\s*={2,}(?:\s+={2,})+\s*$")
_SUBSTITUTION = re.compile(r"(?<!\w)\|\w[^|\n]{0,80}\|_{0,2}(?!\w)")
_NOTE = re.compile(r"^(\s*)\.\. \[[^\]]{1,100}\]\s*(.*)$")
_CODE = {
    "code-block",
    "code",
    "sourcecode",
    "literalinclude",
    "parsed-literal",
    "doctest",
    "prompt",
}
_DRAWN = {"graphviz", "digraph", "graph", "mermaid", "uml", "math"}
_IMAGES = {"image", "figure"}
_LISTS = {"toctree"}
_TABLES = {"list-table", "csv-table", "table"}
_NOTES = {
    "note",
    "warning",
    "tip",
    "hint",
    "important",
    "caution",
    "attention",
    "danger",
    "error",
    "admonition",
    "seealso",
    "versionadded",
    "versionchanged",
    "deprecated",
    "topic",
    "sidebar",
    "epigraph",
    "rubric",
    "only",
    "container",
    "compound",
    "glossary",
}
_INLINE = (
    (re.compile(r"``([^`\n]{1,500})``"), r"`\1`"),
    (re.compile(r":[\w:+-]{1,40}:`([^`<\n]{1,500}?)(?:\s*<[^<>\n]{1,500}>)?`"), r"`\1`"),
    (re.compile(r"`([^`<\n]{1,300}?)\s*<([^<>\n]{1,500})>`__?"), r"[\1](\2)"),
    (re.compile(r"`([^`\n]{1,300})`__?(?!\w)"), r"\1"),
    (re.compile(r"(?<![\w`])(\w[\w-]{0,100})_(?=[\s.,;:)!?]|$)"), r"\1"),
)


def is_restructured(text: str) -> bool:
    """Whether a text is written in reStructuredText, by what only that has."""
    if _MARKDOWN.search(text) and not re.search(r"^\.\. [\w-]+::", text, re.MULTILINE):
        return False
    if re.search(r"^```", text, re.MULTILINE):
        return False
    underlined = _UNDERLINED.search(text) and _LITERAL.search(text)
    return bool(_STRONG.search(text) or underlined)


def to_markdown(text: str) -> str:
    """Return the same lines in Markdown."""
    return "\n".join(_Turner(text.split("\n"), MOST_NESTED).run())


class _Turner:
    def __init__(self, lines: list[str], deeper: int) -> None:
        """``deeper``: how many notes may stand in one another."""
        self._lines, self._deeper = lines, deeper
        self._out: list[str] = []
        self._styles: list[tuple[str, bool]] = []

    def run(self) -> list[str]:
        at = 0
        while at < len(self._lines):
            at = self._step(at)
        return self._out

    def _line(self, at: int) -> str:
        return self._lines[at] if at < len(self._lines) else ""

    def _step(self, at: int) -> int:
        line = self._lines[at]
        if self._is_overlined(at):
            self._out += ["", self._heading(self._line(at + 1), line[0], over=True), ""]
            return at + 3
        if self._is_underlined(at):
            self._out += [self._heading(line, self._line(at + 1)[0], over=False), ""]
            return at + 2
        if directive := _DIRECTIVE.match(line):
            return self._directive(at, directive)
        if note := _NOTE.match(line):
            self._out.append(f"- {_inline(note[2])}")
            return at + 1
        if line.lstrip().startswith(".. ") or line.strip() == "..":
            return self._drop(at)
        if _SIMPLE.match(line):
            return self._simple_table(at)
        if _BORDER.match(line):
            self._out.append("")
            return at + 1
        if line.rstrip().endswith("::"):
            return self._literal(at)
        self._out.append(f"- {_inline(line)}" if _FIELD.match(line) else _inline(line))
        return at + 1

    def _is_overlined(self, at: int) -> bool:
        line, title, below = self._lines[at], self._line(at + 1), self._line(at + 2)
        same = bool(_LINE.match(line)) and below.rstrip() == line.rstrip()
        return same and bool(title.strip()) and not _LINE.match(title)

    def _is_underlined(self, at: int) -> bool:
        line, below = self._lines[at], self._line(at + 1)
        fits = bool(_LINE.match(below)) and len(below.rstrip()) + 2 >= len(line.strip())
        before = self._lines[at - 1].strip() if at else ""
        plain = bool(line.strip()) and not line[:1].isspace() and not _LINE.match(line)
        return fits and plain and (not before or bool(_LINE.match(before)))

    def _heading(self, title: str, mark: str, *, over: bool) -> str:
        style = (mark, over)
        if style not in self._styles:
            self._styles.append(style)
        level = min(6, self._styles.index(style) + 1)
        return f"{'#' * level} {_inline(title.strip())}"

    def _block(self, at: int, indent: int) -> int:
        """The line after an indented block; blank lines inside belong to it."""
        end = last = at
        while end < len(self._lines):
            line = self._lines[end]
            if line.strip():
                if len(line) - len(line.lstrip()) <= indent:
                    break
                last = end + 1
            end += 1
        return last

    def _directive(self, at: int, directive: re.Match[str]) -> int:
        indent, name, argument = len(directive[1]), directive[3].lower(), directive[4].strip()
        end = self._block(at + 1, indent)
        body = self._lines[at + 1 : end]
        if name in _CODE or name in _DRAWN:
            language = argument.split()[0] if argument and name in _CODE else "text"
            return self._fenced(at, end, language, body)
        if name in _IMAGES:
            options = {o[1]: o[2] for line in body if (o := _OPTION.match(line))}
            self._out.append(f"![{options.get('alt') or directive[2] or ''}]({argument})")
            self._out += [("" if _OPTION.match(line) else _inline(line.strip())) for line in body]
        elif name in _LISTS:
            self._out.append(_inline(argument))
            self._out += [f"- {line.strip()}" if _is_entry(line) else "" for line in body]
        elif name in _NOTES or name in _TABLES:
            self._out.append(_inline(argument))
            inner = _dedented(body)
            if self._deeper:
                inner = _Turner(inner, self._deeper - 1).run()
            self._out += ["" if _FIELD.match(line[2:]) else line for line in inner[: len(body)]]
        else:
            self._out += [""] * (end - at)
        return end

    def _literal(self, at: int) -> int:
        line = self._lines[at].rstrip()
        indent = len(line) - len(line.lstrip())
        start = at + 1
        while start < len(self._lines) and not self._lines[start].strip():
            start += 1
        end = self._block(start, indent)
        if start == at + 1 or end == start:
            self._out.append(_inline(line))
            return at + 1
        spoken = line[:-2].rstrip()
        self._out.append(_inline(f"{spoken}:") if spoken else "")
        self._out += [""] * (start - at - 2)
        return self._fenced(start - 1, end, "text", self._lines[start:end])

    def _fenced(self, at: int, end: int, language: str, body: list[str]) -> int:
        """A block of code: its first line stands for the opening, the blank one after it closes."""
        self._out.append(f"```{language}")
        self._out += _dedented(["" if _OPTION.match(line) else line for line in body])
        blank = end < len(self._lines) and not self._lines[end].strip()
        if blank or end >= len(self._lines):
            self._out.append("```")
            return end + 1
        self._out[-1] = "```"
        return end

    def _simple_table(self, at: int) -> int:
        self._out.append("")
        end = at + 1
        while end < len(self._lines) and self._lines[end].strip():
            row = self._lines[end].strip()
            cells = re.split(r"\s{2,}", row)
            self._out.append("" if _BORDER.match(row) else f"| {_inline(' | '.join(cells))} |")
            end += 1
        return end

    def _drop(self, at: int) -> int:
        line = self._lines[at]
        end = self._block(at + 1, len(line) - len(line.lstrip()))
        self._out += [""] * (end - at)
        return end


def _is_entry(line: str) -> bool:
    return bool(line.strip()) and not _OPTION.match(line)


def _dedented(lines: list[str]) -> list[str]:
    indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
    return [line[indent:] for line in lines]


def _inline(line: str) -> str:
    if not line.rstrip().endswith("|") or not line.startswith("| "):
        line = _SUBSTITUTION.sub("", line)
    for pattern, put in _INLINE:
        line = pattern.sub(put, line)
    return line
