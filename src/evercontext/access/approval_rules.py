"""Parse and match rules: ``write_file(src/**)``, ``run_command(git status*)``, ``edit``, ``*``.

A path's ``*`` stays within one directory, ``**`` crosses them; in a command ``*`` stands for
anything, a last `` *`` for nothing too. ``edit`` means every tool that changes files.
``network(npm install *)`` lets such commands use the network, ``outside(docker *)`` lets them run
outside the sandbox; no other rule opens either. Deny beats ask, ask beats allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Literal, get_args

from evercontext.access.launching_programs import launching_option, reason_for_no_rule
from evercontext.access.shell_parser import CommandPart, parts_of
from evercontext.domain.tool import Arguments, CommandAccess, Tool
from evercontext.errors import UsageError

Verdict = Literal["allow", "ask", "deny"]
EDIT = "edit"
"""The name for every tool that changes files by their path."""
COMMANDS = ("run_command",)
ACCESS = "access"
"""The argument by which a command asks for more than the sandbox allows."""
FETCH = "web_fetch"
"""Reads the web: an address can carry something away, so only a rule of its own allows it."""
_OPENING = {level.value: level for level in (CommandAccess.NETWORK, CommandAccess.OUTSIDE)}
"""Names of rules that open something to commands."""
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
class AccessRule:
    """One rule: a verdict, a tool, and what of it."""

    verdict: Verdict
    tool: str
    pattern: str | None = None

    @property
    def text(self) -> str:
        """As the user writes it."""
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


def parse(verdict: str, text: str) -> AccessRule:
    """Read a rule as a user writes it."""
    if verdict not in get_args(Verdict):
        raise UsageError(f"not a verdict: {verdict[:40]!r}", fix="Use allow, ask or deny")
    match = _SHAPE.fullmatch(text.strip())
    if not match:
        raise UsageError(
            f"not a rule: {text[:80]!r}", fix="Write it like write_file(src/**) or run_command(ls*)"
        )
    return AccessRule(verdict, match[1], match[2])  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say of a call, and the rule that decided."""

    verdict: Verdict
    rule: AccessRule | None = None


def judge(rules: Iterable[AccessRule], tool: Tool, arguments: Arguments) -> Ruling | None:
    """Let the strictest fitting rule decide; ``None`` if none fits."""
    known = list(rules)
    for verdict in ("deny", "ask"):
        for rule in known:
            if rule.verdict == verdict and _touches(rule, tool, arguments):
                return Ruling(rule.verdict, rule)
    return _allowed([rule for rule in known if rule.verdict == "allow"], tool, arguments)


def requested_access(tool: Tool, arguments: Arguments) -> CommandAccess:
    """Return what a call asks to open to its command."""
    if is_fetch(tool):
        return CommandAccess.NETWORK
    if not has_command(tool, arguments):
        return CommandAccess.SANDBOX
    return _OPENING.get(str(arguments.get(ACCESS)), CommandAccess.SANDBOX)


def granted_access(rules: Iterable[AccessRule], tool: Tool, arguments: Arguments) -> CommandAccess:
    """Return what the rules open to the command of a call, whether it asks for that or not."""
    known = list(rules)
    if is_fetch(tool):
        ruling = judge(known, tool, arguments)
        allowed = ruling is not None and ruling.verdict == "allow"
        return CommandAccess.NETWORK if allowed else CommandAccess.SANDBOX
    if not has_command(tool, arguments) or not any(rule.tool in _OPENING for rule in known):
        return CommandAccess.SANDBOX
    for level in (CommandAccess.OUTSIDE, CommandAccess.NETWORK):
        ruling = judge(known, tool, {**arguments, ACCESS: level.value})
        if ruling and ruling.verdict == "allow":
            return level
    return CommandAccess.SANDBOX


def rules_for(
    tool: Tool, arguments: Arguments, access: CommandAccess | None = None
) -> tuple[AccessRule, ...]:
    """The rules that would allow calls like this one: what "always" stores.

    With ``access`` they open that to the command, too. None where a rule would allow more than was
    seen; ``reason_for_no_rules`` says why.
    """
    if has_command(tool, arguments):
        if reason_for_no_rules(tool, arguments):
            return ()
        level = access or requested_access(tool, arguments)
        opened = level is not CommandAccess.SANDBOX
        parts = parts_of(_command(arguments))
        needed = [part for part in parts if not (opened and _only_moves(part))]
        name = level.value if opened else tool.name
        return tuple(dict.fromkeys(_command_rule(name, part) for part in needed))
    if is_fetch(tool):
        site = re.match(r"https?://[^/?#]+", str(arguments.get("url", "")))
        return (AccessRule("allow", FETCH, f"{site[0]}/*"),) if site else ()
    paths = paths_of(arguments)
    if is_edit(tool) and paths:
        folders = dict.fromkeys(PurePosixPath(path).parent.as_posix() for path in paths)
        return tuple(
            AccessRule("allow", EDIT, "*" if folder == "." else f"{folder}/**")
            for folder in folders
        )
    return (AccessRule("allow", tool.name),)


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


def is_fetch(tool: Tool) -> bool:
    """True for our own tool that reads the web."""
    return tool.name == FETCH and tool.origin == "evercontext"


def is_edit(tool: Tool) -> bool:
    """True for our own tools that change files by their path."""
    properties = tool.arguments.get("properties", {})
    named = "path" in properties and tool.preview is not None
    return tool.writes and named and tool.origin == "evercontext"


def paths_of(arguments: Arguments) -> list[str]:
    """The paths that a call names, without a leading ``./``."""
    paths = [arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str)]
    return [_plain(path) for path in paths]


def _plain(path: str) -> str:
    return PurePosixPath(path).as_posix()


def _command(arguments: Arguments) -> str:
    return str(arguments.get("command", ""))


def _only_moves(part: CommandPart) -> bool:
    """Tell whether a part of a line is a plain ``cd``, which needs no rule to be opened."""
    return part.words[:1] == ("cd",) and not part.unclear and not part.redirections


def _command_rule(name: str, part: CommandPart) -> AccessRule:
    if part.redirects or not part.words:
        return AccessRule("allow", name, part.text)
    verbs = part.words[0] in _WITH_VERBS
    start = part.spelled[:2] if verbs else part.spelled[:1]
    return AccessRule("allow", name, f"{' '.join(start)} *")


def _touches(rule: AccessRule, tool: Tool, arguments: Arguments) -> bool:
    """True if any part of the call falls under a rule that forbids or asks."""
    if rule.tool in _OPENING:
        # What forbids the network forbids the way out of the sandbox, which has it.
        access = requested_access(tool, arguments)
        if access is CommandAccess.SANDBOX or not access.covers(_OPENING[rule.tool]):
            return False
    elif not _names(rule, tool):
        return False
    if rule.pattern is None:
        return True
    if has_command(tool, arguments):
        line = _command(arguments)
        parts = parts_of(line)
        texts = [line.strip(), *(part.text for part in parts), *(part.plain for part in parts)]
        return any(_command_fits(rule.pattern, text) for text in texts)
    return any(_fits(rule.pattern, value) for value in _values(arguments))


def _allowed(rules: Sequence[AccessRule], tool: Tool, arguments: Arguments) -> Ruling | None:
    """Allow only if every part of the call is allowed by some rule."""
    if is_fetch(tool):
        own = (rule for rule in rules if rule.tool == FETCH)
        url = str(arguments.get("url", ""))
        return next((Ruling("allow", rule) for rule in own if _fits_url(rule.pattern, url)), None)
    brings_command, access = has_command(tool, arguments), requested_access(tool, arguments)
    rules = [
        rule
        for rule in rules
        if _opens(rule, access, brings_command)
        or (access is CommandAccess.SANDBOX and _names(rule, tool))
    ]
    for rule in rules:
        # A rule for the project's own tests is no consent to another command in their place.
        replaced = brings_command and rule.tool == tool.name and tool.name not in COMMANDS
        if rule.pattern is None and not replaced:
            return Ruling("allow", rule)
    if brings_command:
        parts = parts_of(_command(arguments))
        if access is not CommandAccess.SANDBOX:
            parts = [part for part in parts if not _only_moves(part)]
        allowing = [_allows_part(rules, part) for part in parts]
    else:
        allowing = [
            next((rule for rule in rules if _fits(rule.pattern or "", path)), None)
            for path in paths_of(arguments)
        ]
    return Ruling("allow", allowing[0]) if allowing and all(allowing) else None


def _allows_part(rules: Sequence[AccessRule], part: CommandPart) -> AccessRule | None:
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


def _opens(rule: AccessRule, access: CommandAccess, brings_command: bool) -> bool:
    """Tell whether a rule opens as much to commands as a call asks for."""
    return brings_command and rule.tool in _OPENING and _OPENING[rule.tool].covers(access)


def _names(rule: AccessRule, tool: Tool) -> bool:
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


def _fits_url(pattern: str | None, url: str) -> bool:
    return pattern is None or bool(_pattern(pattern, crossing=True).fullmatch(url))


def _command_fits(pattern: str, text: str) -> bool:
    # `pytest *` is meant for `pytest` alone, too.
    bare = pattern.endswith(" *") and text == pattern[:-2]
    return bare or bool(_pattern(pattern, crossing=True).fullmatch(text))


@cache
def _pattern(glob: str, *, crossing: bool) -> re.Pattern[str]:
    character = "." if crossing else "[^/]"
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": f"{character}*", "?": character}
    return re.compile("".join(meanings.get(p) or re.escape(p) for p in pieces), re.DOTALL)
