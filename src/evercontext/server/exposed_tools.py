"""Consent at the doors for other programs: writes inside policy, commands only where allowed."""

from __future__ import annotations

from evercontext.catalog.servers import ADOPTED
from evercontext.catalog.tools import META, Catalog
from evercontext.domain.tool import Arguments, Caller, Effect, Tool
from evercontext.tools.approval_gate import Gate, Verdict
from evercontext.tools.toolbox import Toolbox


def is_offered(tool: Tool, allow_commands: bool) -> bool:
    """True if a program may call the tool; nobody is there to approve a command."""
    return allow_commands or not tool.effects & Effect.EXECUTE


def at_the_door(toolbox: Toolbox, *, allow_commands: bool) -> Toolbox:
    """Return the tools that programs may call, behind a gate that denies the others."""

    def policy(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        return "allow" if is_offered(tool, allow_commands) else "deny"

    # Outside tools have a door of their own, with tokens.
    names = [t.name for t in toolbox if is_offered(t, allow_commands) and t.name not in META]
    return toolbox.only(names).behind(Gate(policy))


def at_the_router(toolbox: Toolbox, catalog: Catalog, *, allow_commands: bool) -> Toolbox:
    """Return the two tools over ours and the outside ones, which the user added for this."""

    def policy(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        ours = not tool.origin.startswith(ADOPTED)
        return "allow" if not ours or is_offered(tool, allow_commands) else "deny"

    return (
        at_the_door(toolbox, allow_commands=allow_commands)
        .along_with(catalog.tools())
        .behind(Gate(policy))
    )
