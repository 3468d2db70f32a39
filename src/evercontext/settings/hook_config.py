"""Parse the configuration of hooks: command, event and tools.

Two spellings are read: the one other agents use, and a shorter one for TOML::

    {"PreToolUse": [{"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "x"}]}]}

    [[hooks.PreToolUse]]
    matcher = "write_file"
    command = "./check.sh"
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
TIMEOUT = 60.0
LONGEST_TIMEOUT = 600.0
MOST = 50
_LONGEST_COMMAND = 4_096
_MATCHER = re.compile(r"[\w.*:|-]{0,256}")


@dataclass(frozen=True, slots=True)
class Hook:
    """One command at one event."""

    event: str
    command: str
    matcher: str = ""
    """Names of tools, ``|`` between them, ``*`` for any letters; nothing means every tool."""
    timeout: float = TIMEOUT
    origin: str = "user"
    """``user``, or ``project`` for one that a repository brought."""

    def __str__(self) -> str:
        about = f"({self.matcher})" if self.matcher else ""
        return f"{self.event}{about}: {self.command}"

    def matches(self, *names: str) -> bool:
        """True if any of a tool's names is meant."""
        # A regular expression of somebody else's could run for ever; this much cannot.
        patterns = [part.replace(".*", "*") for part in self.matcher.split("|") if part]
        return not patterns or any(fnmatchcase(name, part) for name in names for part in patterns)


def parse_hooks(value: Any, origin: str = "user") -> tuple[Hook, ...]:
    """Read hooks; raise ``ValueError`` with what is wrong."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError):
            raise ValueError('expected JSON such as {"Stop": [{"command": …}]}') from None
    if isinstance(value, tuple) and all(isinstance(item, Hook) for item in value):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("expected events, each with a list of hooks")
    hooks = [hook for event, entries in value.items() for hook in _of(str(event), entries, origin)]
    if len(hooks) > MOST:
        raise ValueError(f"at most {MOST} hooks, these are {len(hooks)}")
    return tuple(hooks)


def unknown_events(hooks: tuple[Hook, ...]) -> list[str]:
    """Events that never happen here: a slip, or another agent's."""
    return sorted({hook.event for hook in hooks} - set(EVENTS))


def _of(event: str, entries: Any, origin: str) -> Iterator[Hook]:
    if not isinstance(entries, list):
        raise ValueError(f"{event[:40]} must be a list of hooks")
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise ValueError(f"a hook of {event[:40]} is not an object")
        for command in entry["hooks"] if isinstance(entry.get("hooks"), list) else [entry]:
            yield _hook(event, entry.get("matcher", ""), command, origin)


def _hook(event: str, matcher: Any, entry: Any, origin: str) -> Hook:
    if not isinstance(entry, Mapping) or entry.get("type", "command") != "command":
        raise ValueError(f"a hook of {event[:40]} is not a command")
    command, timeout = entry.get("command"), entry.get("timeout", TIMEOUT)
    if not isinstance(command, str) or not 0 < len(command.strip()) <= _LONGEST_COMMAND:
        raise ValueError(f"a hook of {event[:40]} needs a command")
    if not isinstance(matcher, str) or not _MATCHER.fullmatch(matcher):
        raise ValueError(f"the matcher of a hook of {event[:40]} may hold names, | and * only")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"the timeout of a hook of {event[:40]} must be seconds")
    return Hook(event[:40], command, matcher, min(float(timeout), LONGEST_TIMEOUT), origin)
