"""What commands in the background do to files while a task runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evercontext.agent.run_progress import Progress
from evercontext.domain.tool import Caller
from evercontext.tools.toolbox import Toolbox
from evercontext.workspace.background_commands import BackgroundCommands, BackgroundReport


@dataclass(slots=True)
class BackgroundWork:
    """The share that commands in the background have in one task."""

    commands: BackgroundCommands | None
    toolbox: Toolbox
    caller: Caller
    progress: Progress
    """Takes in what they change, so that the task's result and checks cover it."""
    _report: BackgroundReport = field(default_factory=BackgroundReport)

    @property
    def note(self) -> str:
        """Say what of it cannot be known, or was ended."""
        return self._report.note

    async def begin(self) -> None:
        """Account for what changed before the task."""
        if self.commands:
            await self.commands.begin_task(self.caller)

    async def settle(self) -> bool:
        """Count what changed until now; return whether anything did."""
        if self.commands is None:
            return False
        report = await self.commands.end_task(self.caller)
        stopped = (*self._report.stopped, *report.stopped)
        self._report = replace(report, stopped=stopped)
        await self.toolbox.tell_changes(report.changes, self.caller, self.caller.parent or "")
        self.progress.count(report.changes)
        return any(change.real for change in report.changes)

    def end(self) -> None:
        """Leave them to the session."""
        if self.commands:
            self.commands.leave_task(self.caller)
