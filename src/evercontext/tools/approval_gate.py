"""Decide whether a call needs approval, and ask for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from evercontext.domain.tool import Arguments, Caller, CommandAccess, FileChange, Tool
from evercontext.errors import NobodyToAsk

Verdict = Literal["allow", "ask", "deny"]


def digest_of(tool: Tool, arguments: Arguments, root: str) -> str:
    """Name one call: the tool, what it may do, all its arguments, and where."""
    call = {
        "tool": tool.name,
        "origin": tool.origin,
        "effects": tool.effects.value,
        "arguments": arguments,
        "root": root,
    }
    return hashlib.sha256(json.dumps(call, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """What a person is asked."""

    tool: Tool
    arguments: Arguments
    changes: tuple[FileChange, ...]
    caller: Caller
    root: str = ""
    digest: str = field(init=False)
    """Of the call as it was when it was asked about; what runs must have the same."""

    @property
    def requested(self) -> CommandAccess:
        """Return what the call asks to open to its command."""
        return requested_access(self.tool, self.arguments)

    @property
    def may_open(self) -> bool:
        """Tell whether a person may open more to the command than the call asks for."""
        return self.tool.name == "run_command" and self.tool.origin == "evercontext"

    def __post_init__(self) -> None:
        """Take the digest now: the arguments could be changed while somebody thinks."""
        object.__setattr__(self, "digest", digest_of(self.tool, self.arguments, self.root))


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """What came back."""

    allowed: bool
    by: str
    feedback: str | None = None
    access: CommandAccess = CommandAccess.SANDBOX
    """What the person opened to the command, besides what the call asked for itself."""


Policy = Callable[[Tool, Arguments, Caller], Verdict]
Ask = Callable[[ApprovalQuestion], Awaitable[ApprovalAnswer]]


def allow_all(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
    """Unattended work inside the policy of its entrance."""
    return "allow"


def ask_for_writes(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
    """Reading is free, everything that changes something is asked for."""
    return "ask" if tool.writes else "allow"


async def nobody(question: ApprovalQuestion) -> ApprovalAnswer:
    """Without a terminal and without consent given before, the answer is no."""
    raise NobodyToAsk(
        f"{question.tool.name} needs approval and there is no terminal to ask at",
        fix="Allow it beforehand with --yes",
    )


def requested_access(tool: Tool, arguments: Arguments) -> CommandAccess:
    """Return what a call asks to open to its command; only a person or a rule grants that."""
    if not arguments.get("access") and tool.name != "web_fetch":
        return CommandAccess.SANDBOX
    from evercontext.access import approval_rules

    return approval_rules.requested_access(tool, arguments)


@dataclass(frozen=True, slots=True)
class Gate:
    """A policy, and whom it asks when it says ``ask``."""

    policy: Policy = allow_all
    ask: Ask = nobody

    def ruled(self, tool: Tool, arguments: Arguments) -> bool:
        """Tell whether a rule of the user's own allows this call: that is their word, too."""
        from evercontext.access.permissions import Permissions

        if not isinstance(self.policy, Permissions):
            return False
        ruling = self.policy.ruling(tool, arguments)
        return ruling.verdict == "allow" and ruling.rule is not None

    def granted(self, tool: Tool, arguments: Arguments) -> CommandAccess:
        """Return what the user's rules open to the command of a call."""
        from evercontext.access.permissions import Permissions

        if not isinstance(self.policy, Permissions):
            return CommandAccess.SANDBOX
        return self.policy.granted(tool, arguments)
