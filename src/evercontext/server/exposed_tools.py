"""Choose the tools other programs may call: writes by policy, commands if allowed."""

from __future__ import annotations

from evercontext.catalog.discovery_tools import META, Catalog
from evercontext.catalog.servers import ADOPTED
from evercontext.domain.tool import Arguments, Caller, Effect, Tool
from evercontext.tools.approval_gate import Gate, Verdict
from evercontext.tools.toolbox import Toolbox


def is_exposed(tool: Tool, allow_commands: bool) -> bool:
    """Tell whether a program may call a tool; nobody is there to approve a command."""
    return allow_commands or not tool.effects & Effect.EXECUTE


def _only_reads(tool: Tool, caller: Caller) -> bool:
    """Tell whether a call would change something that its login may only read."""
    return caller.principal.role == "reader" and tool.writes


def exposed_toolbox(toolbox: Toolbox, *, allow_commands: bool) -> Toolbox:
    """Return the tools that programs may call, behind a gate that denies the others."""

    def policy(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        allowed = is_exposed(tool, allow_commands) and not _only_reads(tool, caller)
        return "allow" if allowed else "deny"

    # Tools of outside servers are called through the router, which has tokens.
    names = [t.name for t in toolbox if is_exposed(t, allow_commands) and t.name not in META]
    return toolbox.only(names).behind(Gate(policy))


def router_toolbox(toolbox: Toolbox, catalog: Catalog, *, allow_commands: bool) -> Toolbox:
    """Return the catalog's two tools over ours and those of servers that the user added."""

    def policy(tool: Tool, arguments: Arguments, caller: Caller) -> Verdict:
        ours = not tool.origin.startswith(ADOPTED)
        exposed = not ours or is_exposed(tool, allow_commands)
        return "allow" if exposed and not _only_reads(tool, caller) else "deny"

    return (
        exposed_toolbox(toolbox, allow_commands=allow_commands)
        .along_with(catalog.tools())
        .behind(Gate(policy))
    )
