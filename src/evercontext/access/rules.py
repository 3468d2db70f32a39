"""Rules: ``write_file(src/**)``, ``run_command(git status*)``, ``edit``, ``*``.

A path's ``*`` stays within one directory, ``**`` crosses them; in a command ``*`` stands for
anything, a last `` *`` for nothing too. ``edit`` means every tool that changes files. Deny beats
ask, ask beats allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

from evercontext.access.launching_programs import launching_option, reason_for_no_rule
from evercontext.access.shell_parser import Part, parts_of
from evercontext.domain.tool import Arguments, Tool
from evercontext.errors import UsageError

Verdict = Literal["allow", "ask", "deny"]
EDIT = "edit"
"""The name for every tool that changes files by their path."""
COMMANDS = ("run_command",)
_SHAPE = re.compile(r"([\w.*-]+)(?:\((.*)\))?", re.DOTALL)
_WITH_VERBS = frozenset(
    ("git", "npm", "pnpm", "yarn", "cargo", "go", "uv", "pip", "poetry", "dotnet", "bundle")
)
_SAME = {
    "replace_in_file": "edit_file",
    "search_in_directory": "search_files",
    "list": "list_files",
}
_PATH_KEYS = ("path", "to", "directory")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a verdict, a tool, and what of it."""

    verdict: Verdict
    tool: str
    pattern: str | None = None

    @property
    def text(self) -> str:
        """As the user writes it."""
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


def parse(verdict: str, text: str) -> Rule:
    """Read a rule as a user writes it."""
    if verdict not in get_args(Verdict):
        raise UsageError(f"not a verdict: {verdict[:40]!r}", fix="Use allow, ask or deny")
    found = _SHAPE.fullmatch(text.strip())
    if not found:
        raise UsageError(
            f"not a rule: {text[:80]!r}", fix="Write it like write_file(src/**) or run_command(ls*)"
        )
    return Rule(verdict, found[1], found[2])  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say of a call, and the rule that decided."""

    verdict: Verdict
    rule: Rule | None = None


def judge(rules: Iterable[Rule], tool: Tool, arguments: Arguments) -> Ruling | None:
    """Let the strictest fitting rule decide; ``None`` if none fits."""
    known = list(rules)
    for verdict in ("deny", "ask"):
        for rule in known:
            if rule.verdict == verdict and _touches(rule, tool, arguments):
                return Ruling(rule.verdict, rule)
    return _allowed([rule for rule in known if rule.verdict == "allow"], tool, arguments)


def rules_for(tool: Tool, arguments: Arguments) -> tuple[Rule, ...]:
    """The rules that would allow calls like this one: what "always" stores.

    None where a rule would allow more than was seen; ``reason_for_no_rules`` says why.
    """
    if has_command(tool, arguments):
        if reason_for_no_rules(tool, arguments):
            return ()
        parts = parts_of(_command(arguments))
        return tuple(dict.fromkeys(_command_rule(tool, part) for part in parts))
    paths = paths_of(arguments)
    if is_edit(tool) and paths:
        folders = dict.fromkeys(PurePosixPath(path).parent.as_posix() for path in paths)
        return tuple(
            Rule("allow", EDIT, "*" if folder == "." else f"{folder}/**") for folder in folders
        )
    return (Rule("allow", tool.name),)


def reason_for_no_rules(tool: Tool, arguments: Arguments) -> str | None:
    """Say why "always" cannot be offered for this call, or ``None``."""
    if not has_command(tool, arguments):
        return None
    reasons = (reason_for_no_rule(part) for part in parts_of(_command(arguments)))
    return next((reason for reason in reasons if reason), None)


def has_command(tool: Tool, arguments: Arguments) -> bool:
    """True if the call brings a command line of its own: ``run_command``, ``run.test`` with one."""
    own = tool.name.startswith("run.") and bool(arguments.get("command"))
    return tool.name in COMMANDS or own


def is_edit(tool: Tool) -> bool:
    """True for our own tools that change files by their path."""
    properties = tool.arguments.get("properties", {})
    named = "path" in properties and tool.preview is not None
    return tool.writes and named and tool.origin == "evercontext"


def paths_of(arguments: Arguments) -> list[str]:
    """The paths that a call names, without a leading ``./``."""
    given = [arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str)]
    return [_plain(path) for path in given]


def _plain(path: str) -> str:
    return PurePosixPath(path).as_posix()


def _command(arguments: Arguments) -> str:
    return str(arguments.get("command", ""))


def _command_rule(tool: Tool, part: Part) -> Rule:
    if part.redirects or not part.words:
        return Rule("allow", tool.name, part.text)
    verbs = part.words[0] in _WITH_VERBS
    start = part.spelled[:2] if verbs else part.spelled[:1]
    return Rule("allow", tool.name, f"{' '.join(start)} *")


def _touches(rule: Rule, tool: Tool, arguments: Arguments) -> bool:
    """True if any part of the call falls under a rule that forbids or asks."""
    if not _names(rule, tool):
        return False
    if rule.pattern is None:
        return True
    if has_command(tool, arguments):
        line = _command(arguments)
        parts = parts_of(line)
        texts = [line.strip(), *(part.text for part in parts), *(part.plain for part in parts)]
        return any(_command_fits(rule.pattern, text) for text in texts)
    return any(_fits(rule.pattern, value) for value in _values(arguments))


def _allowed(rules: Sequence[Rule], tool: Tool, arguments: Arguments) -> Ruling | None:
    """Allow only if every part of the call is allowed by some rule."""
    rules = [rule for rule in rules if _names(rule, tool)]
    brings_command = has_command(tool, arguments)
    for rule in rules:
        # A rule for the project's own tests is no consent to another command in their place.
        replaced = brings_command and rule.tool == tool.name and tool.name not in COMMANDS
        if rule.pattern is None and not replaced:
            return Ruling("allow", rule)
    if brings_command:
        found = [_allows_part(rules, part) for part in parts_of(_command(arguments))]
    else:
        found = [
            next((rule for rule in rules if _fits(rule.pattern or "", path)), None)
            for path in paths_of(arguments)
        ]
    return Ruling("allow", found[0]) if found and all(found) else None


def _allows_part(rules: Sequence[Rule], part: Part) -> Rule | None:
    for rule in rules:
        pattern = rule.pattern or ""
        same = parts_of(pattern) == [part] and not part.unclear
        if same or pattern == part.text:
            return rule
        # A rule for `git status*` is no consent to `git status > file` or `git status $(…)`,
        # and one for `find *` none to `find -exec`.
        option = launching_option(part)
        hidden = part.unclear or part.redirects or (option and option not in pattern.split())
        if not hidden and _command_fits(pattern, part.text):
            return rule
    return None


def _names(rule: Rule, tool: Tool) -> bool:
    if rule.tool == EDIT:
        return is_edit(tool)
    spelled = _pattern(_family(rule.tool), crossing=True)
    return any(spelled.fullmatch(_family(name)) for name in (tool.name, *tool.aliases))


def _family(name: str) -> str:
    """One spelling for a tool's two names: a rule for ``write_file`` holds for ``writeFile``."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return _SAME.get(snake, snake)


def _values(arguments: Arguments) -> list[str]:
    flat: list[Any] = list(arguments.values())
    return [*paths_of(arguments), *(value for value in flat if isinstance(value, str))]


def _fits(pattern: str, path: str) -> bool:
    return bool(_pattern(pattern, crossing=False).fullmatch(path))


def _command_fits(pattern: str, text: str) -> bool:
    # `pytest *` is meant for `pytest` alone, too.
    bare = pattern.endswith(" *") and text == pattern[:-2]
    return bare or bool(_pattern(pattern, crossing=True).fullmatch(text))


@cache
def _pattern(glob: str, *, crossing: bool) -> re.Pattern[str]:
    one = "." if crossing else "[^/]"
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    made = {"**/": "(?:.*/)?", "**": ".*", "*": f"{one}*", "?": one}
    return re.compile("".join(made.get(p) or re.escape(p) for p in pieces), re.DOTALL)
