"""The checks that a plan asks for after one of its tasks: run by the harness, in the cage."""

from __future__ import annotations

from collections.abc import Sequence

from evercontext.domain.event import Verification
from evercontext.domain.tool import Caller
from evercontext.events.log import EventLog
from evercontext.tools.toolbox import Toolbox

_LONGEST = 200


async def all_green(
    commands: Sequence[str], toolbox: Toolbox, events: EventLog, caller: Caller
) -> bool:
    """Run each and write down how it ended; one that is red, or could not run, is not green."""
    green = True
    for command in commands:
        result = await toolbox.call("run_command", {"command": command}, caller)
        code = result.data.get("exit_code") if isinstance(result.data, dict) else None
        lines = result.text.strip().splitlines() or [""]
        said = lines[-1][:_LONGEST] if result.ok else lines[0][:_LONGEST]
        body = Verification(kind="task", command=(command,), exit_code=code, summary=said)
        events.emit(body, trace_id=caller.trace_id, parent=caller.parent)
        green = green and result.ok and code == 0
    return green
